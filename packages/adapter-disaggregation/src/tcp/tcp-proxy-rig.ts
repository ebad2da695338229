import { connect, createServer, type Socket } from 'node:net';
import { parseAddress } from './tcp-address.ts';

/** What stands between two sides and sees, changes or cuts what travels. */
export interface TcpProxy {
  readonly address: string;
  /** Sees, and may change, what goes to the listener; null swallows it. */
  toListener: (chunk: Buffer) => Buffer | null;
  fromListener: (chunk: Buffer) => Buffer | null;
  cut(): void;
  close(): void;
}

export async function tcpProxy(to: string): Promise<TcpProxy> {
  const { host, port } = parseAddress(to);
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect({ host, port });
    for (const [one, other, way] of [
      [near, far, 'toListener'],
      [far, near, 'fromListener'],
    ] as const) {
      sockets.add(one);
      one.on('error', () => {});
      one.on('data', (chunk) => {
        const changed = proxy[way](chunk as Buffer);
        if (changed !== null && other.writable) other.write(changed);
      });
      one.on('end', () => other.end());
      one.on('close', () => other.destroy());
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const proxy: TcpProxy = {
    address: `127.0.0.1:${(server.address() as { port: number }).port}`,
    toListener: (chunk) => chunk,
    fromListener: (chunk) => chunk,
    cut() {
      for (const socket of sockets) socket.destroy();
    },
    close() {
      proxy.cut();
      server.close();
    },
  };
  return proxy;
}

/** Whether somebody listens. */
export function isReachable(address: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(parseAddress(address), () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}
