import type { AddressInfo, Server } from 'node:net';
import { AdapterError } from '@bufferwise/adapter-kit';

/** @throws {AdapterError} `unknown-address` for what is no `host:port` */
export function parseAddress(address: string): { host: string; port: number } {
  const [, six, four, digits] = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(address) ?? [];
  const host = six ?? four;
  const port = Number(digits);
  if (host === undefined || !(port < 65_536))
    throw new AdapterError(
      'unknown-address',
      `${JSON.stringify(address)} is no address; write host:port, or [host]:port for IPv6`,
    );
  return { host, port };
}

export function addressOf(server: Server): string {
  const { address, port, family } = server.address() as AddressInfo;
  return family === 'IPv6' ? `[${address}]:${port}` : `${address}:${port}`;
}
