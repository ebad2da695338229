import type { PageConnection, PageTransport, Received, StreamId } from '../../transport/page-transport.ts';
import { BrokenPromiseError, settled } from '../assertions.ts';
import { type ConformancePromise, DEFAULT_PATIENCE_MS, type SuiteHarness } from '../suite.ts';

/** What an author of a transport tells the suite. */
export interface PageTransportHarness extends SuiteHarness {
  /** Two transports that reach each other, and share nothing with others. */
  create(): readonly [PageTransport, PageTransport] | Promise<readonly [PageTransport, PageTransport]>;
  /** Closes both and removes what they left. Default: closes them. */
  destroy?(pair: readonly [PageTransport, PageTransport]): void | Promise<void>;
  /** Cuts a connection as a network does: without a word to either side. */
  cut?(connection: PageConnection): void | Promise<void>;
  /** Has the bytes of the next `sendPages` of the first transport damaged on their way. */
  damageNext?(pair: readonly [PageTransport, PageTransport]): void | Promise<void>;
}

export type TransportPromise = ConformancePromise<PageTransportHarness>;

/** Two transports and a connection between them. */
export interface Line {
  readonly pair: readonly [PageTransport, PageTransport];
  readonly near: PageConnection;
  readonly far: PageConnection;
  /** The result of a call, or an error when it does not settle in time. */
  soon<T>(call: Promise<T>, what: string): Promise<T>;
}

/** A promise about a connection. */
export function overLine(
  promise: Omit<TransportPromise, 'run'>,
  story: (line: Line, harness: PageTransportHarness) => Promise<void>,
): TransportPromise {
  return {
    ...promise,
    async run(harness) {
      const patienceMs = harness.patienceMs ?? DEFAULT_PATIENCE_MS;
      const soon = <T>(call: Promise<T>, what: string) => settled(call, patienceMs, what);
      const pair = await harness.create();
      try {
        const listener = await soon(pair[1].listen(), 'listen');
        const [near, far] = await soon(Promise.all([pair[0].connect(listener.address), listener.accept()]), 'connect and accept');
        await story({ pair, near, far, soon }, harness);
      } finally {
        await destroyPair(harness, pair);
      }
    },
  };
}

export async function destroyPair(harness: PageTransportHarness, pair: readonly [PageTransport, PageTransport]): Promise<void> {
  const patienceMs = harness.patienceMs ?? DEFAULT_PATIENCE_MS;
  const closeBoth = async () => {
    for (const transport of pair) await transport.close();
  };
  await settled(harness.destroy ? Promise.resolve(harness.destroy(pair)) : closeBoth(), patienceMs, 'destroy');
}

export function streamOf(request = 'request', generation = 0, group = 0): StreamId {
  return { request, generation, group };
}

/** Bytes that look like no others. */
export function bytesOf(seed: number, length = 48): Uint8Array {
  return Uint8Array.from({ length }, (_, i) => (seed * 29 + i * (2 * seed + 1)) & 255);
}

/** What came, which must be pages or a message. */
export function contentOf(received: Received): Uint8Array {
  if (received.kind === 'message') return received.body;
  if (received.kind === 'pages') return received.bytes;
  throw new BrokenPromiseError(`expected pages or a message, got ${received.kind}`);
}
