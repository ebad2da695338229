import type { PageConnection, Received } from '@bufferwise/adapter-kit';
import { decodeMessage } from '../../src/transfer/transfer-message.ts';

/** A connection that stops for ever before one of its steps: sends and receipts of a transfer, counted from 1, without signs of life. */
export function stoppingAt(connection: PageConnection, step: number, stopped: (what: string) => void): PageConnection {
  let count = 0;
  let isStopped = false;
  const pass = async (what: string): Promise<void> => {
    if (!isStopped && (what.endsWith('renew') || ++count !== step)) return;
    if (!isStopped) stopped(what);
    isStopped = true;
    await new Promise(() => {});
  };
  const told = (body: Uint8Array) => decodeMessage(body).kind;
  return {
    async send(message, options) {
      await pass(`sends ${told(message.body)}`);
      return connection.send(message, options);
    },
    async sendPages(pages, options) {
      await pass(`sends pages of group ${pages.stream.group}`);
      return connection.sendPages(pages, options);
    },
    async receive(options): Promise<Received> {
      const received = await connection.receive(options);
      await pass(`receives ${received.kind === 'message' ? told(received.body) : received.kind}`);
      return received;
    },
    abort: (request, generation, reason) => connection.abort(request, generation, reason),
    retire: (request, generation) => connection.retire(request, generation),
    get bytesInFlight() {
      return connection.bytesInFlight;
    },
    close: () => connection.close(),
  };
}
