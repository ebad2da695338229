import { AdapterError } from '@bufferwise/adapter-kit';

/** @throws {AdapterError} `unknown-address` for what is no `ws://` or `wss://` URL of a host */
export function parseWebSocketAddress(address: string): URL {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url === undefined || !/^wss?:$/.test(url.protocol) || url.hostname === '' || url.hash !== '')
    throw new AdapterError(
      'unknown-address',
      `${JSON.stringify(address)} is no address; write ws://host:port, or wss://host:port for TLS, with or without a path`,
    );
  return url;
}
