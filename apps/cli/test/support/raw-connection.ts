import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** A connection on which a test says what it likes, byte by byte. */
export interface RawConnection {
  readonly socket: Socket;
  write(text: string | Uint8Array): void;
  /** All that came, once the other side has closed. */
  readonly closed: Promise<string>;
}

export async function connectTo(url: string): Promise<RawConnection> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  let received = '';
  socket.on('data', (bytes) => {
    received += bytes.toString('latin1');
  });
  // A server that has had enough may reset the connection; what matters is what it said before.
  socket.on('error', () => {});
  socket.on('end', () => socket.end());
  const closed = new Promise<string>((resolve) => socket.once('close', () => resolve(received)));
  await once(socket, 'connect');
  return { socket, closed, write: (text) => void socket.write(text) };
}

/** A whole request as text. */
export function requestText(path: string, body: unknown, headers: readonly string[] = []): string {
  const text = JSON.stringify(body);
  const head = [
    `POST ${path} HTTP/1.1`,
    'host: test',
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(text)}`,
    ...headers,
  ];
  return `${head.join('\r\n')}\r\n\r\n${text}`;
}
