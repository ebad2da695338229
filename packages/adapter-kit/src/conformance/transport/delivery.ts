import { ensure, ensureCode, ensureEqual } from '../assertions.ts';
import { bytesOf, contentOf, overLine, streamOf } from './harness.ts';

export const delivers = overLine(
  { name: 'delivers messages and pages of every size whole, in both directions' },
  async ({ pair, near, far, soon }) => {
    const { maxMessageBytes, maxPagesBytes } = pair[0].limits;
    for (const [from, to] of [
      [near, far],
      [far, near],
    ]) {
      for (const size of [0, 1, 1000, 65_536].filter((bytes) => bytes <= maxMessageBytes)) {
        await soon(from.send({ stream: streamOf('a', 3, 7), body: bytesOf(size, size) }), 'send');
        ensureEqual(
          await soon(to.receive(), 'receive'),
          { kind: 'message', stream: streamOf('a', 3, 7), body: bytesOf(size, size) },
          `a message of ${size} bytes`,
        );
      }
      for (const size of [1, 4096, 262_144].filter((bytes) => bytes <= maxPagesBytes)) {
        const sent = bytesOf(size, size + 3).subarray(2, 2 + size);
        await soon(from.sendPages({ stream: streamOf('ü', 2 ** 32 - 1, 2 ** 32 - 1), firstPage: 5, bytes: sent }), 'sendPages');
        const received = await soon(to.receive(), 'receive');
        ensureEqual(
          { ...received, bytes: 0 },
          { kind: 'pages', stream: streamOf('ü', 2 ** 32 - 1, 2 ** 32 - 1), firstPage: 5, bytes: 0 },
          'pages',
        );
        const got = contentOf(received);
        ensure(got.length === size && got.every((byte, i) => byte === sent[i]), `pages of ${size} bytes came with other bytes`);
      }
    }
  },
);

export const keepsOrder = overLine(
  { name: 'delivers everything once, and in the order in which it was sent' },
  async ({ near, far, soon }) => {
    const sends: Promise<void>[] = [];
    for (let i = 0; i < 60; i++) {
      const bytes = bytesOf(i, 1 + ((i * 97) % 400));
      sends.push(
        i % 3 === 0
          ? near.send({ stream: streamOf(`r${i % 5}`), body: bytes })
          : near.sendPages({ stream: streamOf(`r${i % 5}`), firstPage: i, bytes }),
      );
    }
    await soon(Promise.all(sends), 'many sends at once');
    for (let i = 0; i < 60; i++) {
      ensureEqual(
        contentOf(await soon(far.receive(), 'receive')),
        bytesOf(i, 1 + ((i * 97) % 400)),
        `what was sent as number ${i}`,
      );
    }
    await soon(near.send({ stream: streamOf('last'), body: bytesOf(1) }), 'send');
    ensureEqual(contentOf(await soon(far.receive(), 'receive')), bytesOf(1), 'what was sent last');
  },
);

export const ownCopy = overLine({ name: 'sends what the bytes were when the call was made' }, async ({ near, far, soon }) => {
  const bytes = bytesOf(4);
  await soon(near.sendPages({ stream: streamOf(), firstPage: 0, bytes }), 'sendPages');
  bytes.fill(0);
  const received = contentOf(await soon(far.receive(), 'receive'));
  ensureEqual(received, bytesOf(4), 'pages whose sender used the bytes again');
});

export const limits = overLine(
  { name: 'states how much it takes at a time, and takes it' },
  async ({ pair, near, far, soon }) => {
    const { maxMessageBytes, maxPagesBytes, windowBytes } = pair[0].limits;
    for (const [name, limit] of Object.entries({ maxMessageBytes, maxPagesBytes, windowBytes }))
      ensure(Number.isSafeInteger(limit) && limit >= 1, `limits.${name} is ${limit}; it must be a whole number from 1 on`);
    ensure(windowBytes >= maxPagesBytes, `limits.windowBytes is ${windowBytes}, less than maxPagesBytes, ${maxPagesBytes}`);
    const size = Math.min(maxPagesBytes, 8 << 20);
    await soon(near.sendPages({ stream: streamOf(), firstPage: 0, bytes: new Uint8Array(size).fill(7) }), 'sendPages');
    const received = contentOf(await soon(far.receive(), 'receive'));
    ensure(
      received.length === size && received.every((byte) => byte === 7),
      `pages of ${size} bytes came with ${received.length}`,
    );
  },
);

export const waitsForRoom = overLine(
  { name: 'waits with pages while the other side has not taken those before', flag: 'flowControl' },
  async ({ pair, near, far, soon }) => {
    const { maxPagesBytes, windowBytes } = pair[0].limits;
    const size = Math.min(maxPagesBytes, Math.max(1, windowBytes >> 2));
    const fitting = Math.floor(windowBytes / size);
    for (let i = 0; i < fitting; i++)
      await soon(near.sendPages({ stream: streamOf(), firstPage: i, bytes: new Uint8Array(size) }), 'sendPages');
    ensure(near.bytesInFlight <= windowBytes, `${near.bytesInFlight} bytes are on their way, and the window has ${windowBytes}`);
    let sent = false;
    const next = near.sendPages({ stream: streamOf(), firstPage: fitting, bytes: new Uint8Array(size) }).then(() => {
      sent = true;
    });
    await new Promise((resolve) => setTimeout(resolve, 30));
    ensure(!sent, 'pages were sent although the window was full');
    for (let i = 0; i <= fitting; i++) await soon(far.receive(), 'receive');
    await soon(next, 'pages that waited for room');
    await until(() => near.bytesInFlight === 0, 'bytesInFlight is not 0 after everything was received');
  },
);

export const unknownAddress = overLine({ name: 'connects to nobody where nobody listens' }, async ({ pair, soon }) => {
  const listener = await soon(pair[1].listen(), 'listen');
  await soon(listener.close(), 'close of a listener');
  await ensureCode(() => soon(pair[0].connect(listener.address), 'connect'), 'unknown-address', 'connect to a closed listener');
});

/** Waits until a condition holds that follows from what has happened. */
export async function until(condition: () => boolean, what: string): Promise<void> {
  for (let turn = 0; turn < 200 && !condition(); turn++) await new Promise((resolve) => setTimeout(resolve, 5));
  ensure(condition(), what);
}
