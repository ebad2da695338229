import { expect, test } from 'vitest';
import type { ControlMessage } from './control-message.ts';
import { checkMessage, decodeJson, encodeJson, MOST_HASHES, MOST_MESSAGE_BYTES } from './control-message.ts';
import { type Envelope, EnvelopeCodec } from './envelope.ts';

/** How many; `BUFFERWISE_FUZZ=5000000` for a long run. */
const ROUNDS = Number(process.env.BUFFERWISE_FUZZ ?? 100_000) / 10;
const key = new Uint8Array(16).fill(3);
const job = { request: 'r', generation: 3, role: 'prefill' } as const;
const worker = { id: 'w', role: 'both', address: 'tcp://x', fingerprint: 'f', layoutHash: 'l', slots: 1 } as const;
const MESSAGES: readonly ControlMessage[] = [
  { kind: 'status', worker, load: { freePages: 0, active: 1, waiting: 2 }, draining: false, nextBlocks: 4 },
  { kind: 'leave' },
  {
    kind: 'blocks',
    number: 7,
    fresh: true,
    changes: [
      ['+', 0, ['00112233445566ff']],
      ['-', 29, []],
    ],
  },
  { kind: 'who' },
  { kind: 'resync' },
  { kind: 'job', ...job, decode: { worker: 'd', address: '' }, moves: true, body: 'ä' },
  { kind: 'job', ...job, decode: null, moves: false, body: '' },
  { kind: 'cancel', request: 'r', generation: 2 ** 32 - 1, role: null },
  { kind: 'heard', ended: true, ...job },
  { kind: 'taken', ...job },
  { kind: 'declined', reason: 'busy', ...job },
  { kind: 'progress', ...job },
  { kind: 'done', result: '', ...job },
  { kind: 'failed', reason: 'why', permanent: false, ...job },
];
const envelopeOf = (message: ControlMessage): Envelope => ({
  from: 'w',
  session: 's',
  startedMs: 1,
  number: 0,
  sentMs: 1000,
  message,
});
const codec = (own: Uint8Array | null, wallMs = 1000) => new EnvelopeCodec({ key: own, mostSkewMs: 500, wallMs: () => wallMs });
const refused = { code: 'invalid-control-message' };

test.each(MESSAGES)('$kind is what it was, sealed or not', async (message) => {
  for (const each of [codec(null), codec(key)])
    expect(await each.open('a.b', await each.seal('a.b', envelopeOf(message)))).toEqual(envelopeOf(message));
});

test('a seal is good for its key, its subject and its time, and for every byte', async () => {
  const bytes = await codec(key).seal('a.b', envelopeOf(MESSAGES[0]));
  await expect(codec(key).open('a.c', bytes)).rejects.toMatchObject(refused);
  await expect(codec(new Uint8Array(16)).open('a.b', bytes)).rejects.toMatchObject(refused);
  await expect(codec(null).open('a.b', bytes)).rejects.toMatchObject(refused);
  await expect(codec(key).open('a.b', await codec(null).seal('a.b', envelopeOf(MESSAGES[0])))).rejects.toMatchObject(refused);
  for (const wallMs of [499, 1501]) await expect(codec(key, wallMs).open('a.b', bytes)).rejects.toMatchObject(refused);
  for (const wallMs of [500, 1500]) await expect(codec(key, wallMs).open('a.b', bytes)).resolves.toBeDefined();
  for (let at = 0; at < bytes.length; at++) {
    const flipped = bytes.slice();
    flipped[at] ^= 1 << (at & 7);
    await expect(codec(key).open('a.b', flipped), `byte ${at}`).rejects.toMatchObject(refused);
  }
});

/** Puts something else in place of one value somewhere inside. */
function harmed(value: unknown, next: (below: number) => number): unknown {
  const others = [null, -1, 0.5, '', 'x'.repeat(600), [], {}, true, 2 ** 53, Number.NaN, '\ud800', { id: 1 }];
  if (typeof value !== 'object' || value === null || next(4) === 0) return others[next(others.length)];
  const copy: Record<string, unknown> = Array.isArray(value) ? ([...value] as never) : { ...value };
  const keys = Object.keys(copy);
  const at = keys[next(keys.length)];
  if (at === undefined) return others[next(others.length)];
  if (next(5) === 0) delete copy[at];
  else copy[at] = harmed(copy[at], next);
  return copy;
}

test('whatever comes is a message or is refused: nothing else is thrown', async () => {
  let state = 5;
  const next = (below: number) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return (state >>> 8) % below;
  };
  for (let round = 0; round < ROUNDS; round++) {
    const message = harmed(MESSAGES[next(MESSAGES.length)], next);
    try {
      const checked = checkMessage(decodeJson(encodeJson(message)));
      // What passes is of a form that those who handle it count on.
      expect(typeof checked.kind).toBe('string');
      if ('generation' in checked) expect(Number.isInteger(checked.generation)).toBe(true);
      if (checked.kind === 'status') expect(checked.worker.id).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
    } catch (error) {
      expect(error, `round ${round}: ${JSON.stringify(message)}`).toMatchObject(refused);
    }
    if (round % 20 === 0) {
      const bytes = await codec(null).seal('s', envelopeOf(MESSAGES[next(MESSAGES.length)]));
      for (let flips = 1 + next(3); flips > 0; flips--) bytes[next(bytes.length)] ^= 1 << next(8);
      await codec(null)
        .open('s', bytes.subarray(0, bytes.length - next(3)))
        .catch((error) => expect(error).toMatchObject(refused));
    }
  }
});

test('nothing is read that is longer than may be', () => {
  const tooMany = { kind: 'blocks', number: 0, fresh: false };
  const hash = '0'.repeat(16);
  expect(() => checkMessage({ ...tooMany, changes: [['+', 0, Array(MOST_HASHES + 1).fill(hash)]] })).toThrow();
  expect(() => checkMessage({ ...tooMany, changes: [['+', 0, Array(MOST_HASHES).fill(hash)]] })).not.toThrow();
  expect(() => checkMessage({ ...tooMany, changes: [['+', 30, [hash]]] })).toThrow();
  expect(() => decodeJson(encodeJson({ a: 'x'.repeat(MOST_MESSAGE_BYTES) }))).toThrowError(expect.objectContaining(refused));
});
