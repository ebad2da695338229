import type { PageConnection } from '@bufferwise/adapter-kit';
import { StampedWorker } from '../../src/worker/stamped-worker-rig.ts';
import type { TransferReport } from '../../src/worker/transfer-report.ts';
import { TransferSender } from '../../src/worker/transfer-sender.ts';

export const KEY = new Uint8Array(16).fill(7);
export const MODEL = 'a stamped model';
export const TIMES = { leaseMs: 5000, retryMs: 500 };
/** What moves: two blocks and a part of a third one, a window, a state and what is private. */
export const TOKENS = Array.from({ length: 11 }, (_, i) => i * 5);

export function newWorker(): StampedWorker {
  return new StampedWorker({
    layers: [{ kind: 'full', valuePolicy: 'private' }, { kind: 'window', policy: 'optional', windowSize: 5 }, { kind: 'state' }],
  });
}

export function newSender({ manager, device }: StampedWorker): TransferSender {
  return new TransferSender({ manager, device, modelFingerprint: MODEL, times: TIMES });
}

/** Computes the request in three chunks and moves it. */
export async function moveRequest(
  worker: StampedWorker,
  sender: TransferSender,
  connection: PageConnection,
  generation: number,
): Promise<TransferReport> {
  const cache = await worker.open(TOKENS);
  if (cache === null) throw new Error('there is no room for the prompt');
  const transfer = sender.send(connection, {
    request: 'a request',
    generation,
    tokens: TOKENS,
    pages: cache,
    release: () => cache.close(),
  });
  transfer.progress(cache.historyLength);
  while (transfer.isOpen && cache.historyLength < TOKENS.length) {
    worker.step(cache, TOKENS, cache.historyLength, Math.min(TOKENS.length, cache.historyLength + 4));
    transfer.progress(cache.historyLength);
    await new Promise(setImmediate);
  }
  return transfer.done;
}
