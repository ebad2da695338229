import type { PageConnection, PageTransport } from '../../transport/page-transport.ts';
import { lifecyclePromises } from '../lifecycle-trait.ts';
import type { Suite } from '../suite.ts';
import { delivers, keepsOrder, limits, ownCopy, unknownAddress, waitsForRoom } from './delivery.ts';
import { bytesOf, destroyPair, type PageTransportHarness, streamOf } from './harness.ts';
import { aborts, cutOff, damaged, interrupted, retires, saysLost } from './loss.ts';

/** What every page transport does. */
export const pageTransportSuite: Suite<PageTransportHarness> = {
  kind: 'page transport',
  promises: [
    delivers,
    keepsOrder,
    ownCopy,
    limits,
    waitsForRoom,
    unknownAddress,
    aborts,
    retires,
    saysLost,
    cutOff,
    damaged,
    interrupted,
    ...named(
      'transport',
      lifecyclePromises<PageTransportHarness, PageTransport>({
        async open(harness) {
          const pair = await harness.create();
          return { plugin: pair[0], end: () => destroyPair(harness, pair) };
        },
        calls: {
          listen: (transport, options) => transport.listen(undefined, options),
        },
      }),
    ),
    ...named(
      'connection',
      lifecyclePromises<PageTransportHarness, PageConnection>({
        async open(harness) {
          const pair = await harness.create();
          const listener = await pair[1].listen();
          const [near] = await Promise.all([pair[0].connect(listener.address), listener.accept()]);
          return { plugin: near, end: () => destroyPair(harness, pair) };
        },
        calls: {
          send: (connection, options) => connection.send({ stream: streamOf(), body: bytesOf(1) }, options),
          sendPages: (connection, options) =>
            connection.sendPages({ stream: streamOf(), firstPage: 0, bytes: bytesOf(2) }, options),
          receive: (connection, options) => connection.receive(options),
        },
      }),
    ),
  ],
  async supports(harness) {
    const pair = await harness.create();
    await destroyPair(harness, pair);
    return pair[0].supports;
  },
};

/** The promises of a part of the plugin, told apart from those of another. */
function named<P extends { readonly name: string }>(part: string, promises: readonly P[]): P[] {
  return promises.map((promise) => ({ ...promise, name: `as a ${part}: ${promise.name}` }));
}
