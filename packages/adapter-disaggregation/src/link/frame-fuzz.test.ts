import { encodeFrame, type FrameKind } from '@bufferwise/adapter-kit';
import { expect, test } from 'vitest';
import { ByteQueue } from './byte-queue.ts';
import { FrameReader } from './frame-reader.ts';
import { HELLO_BYTES, makeHello, readHello } from './handshake.ts';

/** How many; `BUFFERWISE_FUZZ=5000000` for a long run. */
const ROUNDS = Number(process.env.BUFFERWISE_FUZZ ?? 100_000);
const KINDS: readonly FrameKind[] = ['message', 'pages', 'abort', 'credit', 'close'];
const MAX_BODY = 300;

/** Small, fast, and the same for a seed everywhere. */
function numbers(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

function frameOf(next: (below: number) => number): Uint8Array {
  return encodeFrame({
    kind: KINDS[next(KINDS.length)],
    stream: { request: 'x'.repeat(next(20)), generation: next(2 ** 32), group: next(9) },
    index: next(2 ** 32),
    body: Uint8Array.from({ length: next(40) }, () => next(256)),
  });
}

/** A frame with some harm done to it. */
function harmed(frame: Uint8Array, next: (below: number) => number): Uint8Array {
  const bytes = frame.slice();
  const harm = next(6);
  if (harm === 0) return Uint8Array.from({ length: next(100) }, () => next(256));
  if (harm === 1) return bytes.subarray(0, next(bytes.length));
  if (harm === 2) return Uint8Array.of(...bytes, ...bytes.subarray(0, next(bytes.length)));
  if (harm < 5) for (let flips = 1 + next(4); flips > 0; flips--) bytes[next(bytes.length)] ^= 1 << next(8);
  return bytes;
}

test('whatever comes is frames, frames with damage, or the end: nothing else is thrown, read or kept', () => {
  const next = numbers(1);
  for (let round = 0; round < ROUNDS; round++) {
    const bytes = harmed(frameOf(next), next);
    const reader = new FrameReader({ maxBodyBytes: MAX_BODY, sealBytes: next(2) * 16 });
    let taken = 0;
    try {
      for (let at = 0; at < bytes.length; ) {
        const end = Math.min(bytes.length, at + 1 + next(60));
        reader.push(bytes.subarray(at, end));
        at = end;
        for (let record = reader.next(); record !== null; record = reader.next()) {
          taken += record.bytes.length + record.seal.length;
          if (record.frame.body.length > MAX_BODY) throw new Error(`round ${round}: ${record.frame.body.length} bytes`);
        }
        if (taken + reader.length !== at) throw new Error(`round ${round}: ${taken} taken, ${reader.length} kept of ${at}`);
      }
    } catch (error) {
      if ((error as { code?: string }).code !== 'frame-damaged') throw new Error(`round ${round}`, { cause: error });
    }
  }
});

test('frames come out of any portions as they went in', () => {
  const next = numbers(2);
  const frames = Array.from({ length: 500 }, () => frameOf(next));
  const all = Buffer.concat(frames);
  const reader = new FrameReader({ maxBodyBytes: MAX_BODY, sealBytes: 0 });
  let found = 0;
  for (let at = 0; at < all.length; ) {
    const end = at + 1 + next(200);
    reader.push(all.subarray(at, end));
    at = end;
    for (let record = reader.next(); record !== null; record = reader.next())
      expect(Buffer.compare(record.bytes, frames[found++])).toBe(0);
  }
  expect(found).toBe(frames.length);
});

test('a header that asks for too much is refused before a body comes', () => {
  const frame = encodeFrame({
    kind: 'pages',
    stream: { request: '', generation: 0, group: 0 },
    index: 0,
    body: new Uint8Array(MAX_BODY + 1),
  });
  const reader = new FrameReader({ maxBodyBytes: MAX_BODY, sealBytes: 16 });
  reader.push(frame.subarray(0, 32));
  expect(() => reader.next()).toThrowError(expect.objectContaining({ code: 'frame-damaged' }));
});

test('whatever comes as a hello is one or is refused', () => {
  const next = numbers(3);
  const good = makeHello({ maxMessageBytes: 1, maxPagesBytes: 2, windowBytes: 3 }, true);
  expect(readHello(good, true)).toEqual({ maxMessageBytes: 1, maxPagesBytes: 2, windowBytes: 3 });
  for (let round = 0; round < ROUNDS / 10; round++) {
    const hello = good.slice();
    hello[next(HELLO_BYTES)] ^= 1 + next(255);
    try {
      readHello(hello, true);
    } catch (error) {
      if ((error as { code?: string }).code !== 'peer-not-authenticated') throw error;
    }
  }
});

test('bytes are taken in the order and number in which they came', () => {
  const next = numbers(4);
  const queue = new ByteQueue();
  let pushed = 0;
  let taken = 0;
  for (let round = 0; round < 5000; round++) {
    queue.push(Uint8Array.from({ length: next(9) }, () => pushed++ & 255));
    const length = next(12);
    const bytes = queue.take(length);
    if (bytes === null) expect(queue.length).toBeLessThan(length);
    for (const byte of bytes ?? []) expect(byte).toBe(taken++ & 255);
    expect(queue.length).toBe(pushed - taken);
  }
});
