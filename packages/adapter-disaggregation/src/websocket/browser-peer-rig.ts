import { WebSocketTransport } from './websocket-transport.ts';

/** The other side for tests in a browser: a worker in Node that sends back what comes. */
export async function startPeer(): Promise<{ address: string; key: number[]; close(): Promise<void> }> {
  const key = crypto.getRandomValues(new Uint8Array(32));
  const transport = new WebSocketTransport({ key });
  const listener = await transport.listen();
  void serve(listener);
  return { address: listener.address, key: [...key], close: () => transport.close() };
}

async function serve(listener: Awaited<ReturnType<WebSocketTransport['listen']>>): Promise<void> {
  for (;;) {
    const connection = await listener.accept().catch(() => undefined);
    if (connection === undefined) return;
    void echo(connection).catch(() => connection.close());
  }
}

async function echo(connection: Awaited<ReturnType<typeof WebSocketTransport.prototype.connect>>): Promise<void> {
  for (;;) {
    const received = await connection.receive();
    if (received.kind === 'message') await connection.send(received);
    else if (received.kind === 'pages') await connection.sendPages(received);
    else if (received.kind === 'aborted')
      await connection.send({
        stream: { request: 'heard', generation: 0, group: 0 },
        body: new TextEncoder().encode(`${received.request} ${received.generation} ${received.reason}`),
      });
  }
}
