import type { PageConnection, StreamId } from '@bufferwise/adapter-kit';
import { decodeMessage, encodeMessage, type TransferMessage } from '../transfer/transfer-message.ts';

/** Who hears what comes over a connection. */
export interface ConnectionListener {
  message(stream: StreamId, message: TransferMessage): void;
  pages(stream: StreamId, firstPage: number, bytes: Uint8Array): void;
  /** What came for a try is no message, or the other side's transport gave it up. */
  broken(request: string, generation: number, reason: string): void;
}

/** Hears a connection to its end, which is the answer. */
export async function listenTo(connection: PageConnection, listener: ConnectionListener): Promise<Error> {
  for (;;) {
    try {
      const received = await connection.receive();
      if (received.kind === 'pages') listener.pages(received.stream, received.firstPage, received.bytes);
      else if (received.kind === 'message') hear(received.stream, received.body, listener);
      else if (received.kind === 'aborted') listener.broken(received.request, received.generation, received.reason);
      // Of damaged pages nobody knows whose they were: they are asked for again.
    } catch (error) {
      return error as Error;
    }
  }
}

/** Sends a message. Where the connection is gone nobody hears it, which whoever listens to the connection learns by himself. */
export function say(connection: PageConnection, request: string, generation: number, message: TransferMessage): Promise<void> {
  return connection.send({ stream: { request, generation, group: 0 }, body: encodeMessage(message) }).catch(() => {});
}

function hear(stream: StreamId, body: Uint8Array, listener: ConnectionListener): void {
  let message: TransferMessage;
  try {
    message = decodeMessage(body);
  } catch (error) {
    listener.broken(stream.request, stream.generation, (error as Error).message);
    return;
  }
  listener.message(stream, message);
}
