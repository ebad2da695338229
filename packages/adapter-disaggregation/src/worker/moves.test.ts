import type { PageConnection } from '@bufferwise/adapter-kit';
import { memoryTransportPair } from '@bufferwise/adapter-kit/memory';
import type { ReusePolicy } from '@bufferwise/core-policy';
import { afterEach, describe, expect, test } from 'vitest';
import type { Admission, ArrivedRequest } from './incoming-transfer.ts';
import { type StampedLayer, type StampedOptions, StampedWorker } from './stamped-worker-rig.ts';
import { TransferReceiver } from './transfer-receiver.ts';
import type { TransferReport } from './transfer-report.ts';
import { TransferSender } from './transfer-sender.ts';

const MODEL = 'a model';
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const seq = (count: number, salt = 0) => Array.from({ length: count }, (_, i) => i * 3 + salt);

interface Pair {
  prefill: StampedWorker;
  decode: StampedWorker;
  sender: TransferSender;
  receiver: TransferReceiver;
  connection: PageConnection;
  arrived: ArrivedRequest[];
  failed: TransferReport[];
}

async function pairOf(
  from: StampedOptions,
  to: StampedOptions = from,
  more: { maxPagesBytes?: number; model?: string; admission?: Partial<Admission>; withForms?: boolean } = {},
): Promise<Pair> {
  const { maxPagesBytes, model = MODEL, admission, withForms = true } = more;
  const prefill = new StampedWorker(from);
  const decode = new StampedWorker(to);
  const arrived: ArrivedRequest[] = [];
  const failed: TransferReport[] = [];
  const [here, there] = memoryTransportPair();
  const listener = await there.listen('decode');
  const connection = await here.connect('decode');
  const forms = (worker: StampedWorker) => (withForms ? worker.forms : undefined);
  const sender = new TransferSender({
    manager: prefill.manager,
    device: prefill.device,
    modelFingerprint: MODEL,
    forms: forms(prefill),
    maxPagesBytes,
  });
  const receiver = new TransferReceiver({
    manager: decode.manager,
    device: decode.device,
    modelFingerprint: model,
    forms: forms(decode),
    maxPagesBytes,
    admit: ({ note }) =>
      ({
        tokens: Uint32Array.from(JSON.parse(note)),
        arrived: (request: ArrivedRequest) => arrived.push(request),
        failed: (report: TransferReport) => failed.push(report),
        ...admission,
      }) as Admission,
  });
  const served = receiver.serve(await listener.accept());
  cleanups.push(async () => {
    await here.close();
    await there.close();
    await served;
    expect([sender.numOpen, receiver.numOpen, receiver.numHolding]).toEqual([0, 0, 0]);
    for (const { cache } of arrived) cache.close();
    expect([...prefill.leaks(), ...decode.leaks()]).toEqual([]);
  });
  return { prefill, decode, sender, receiver, connection, arrived, failed };
}

/** Computes a request in chunks on the prefill side and moves it. */
async function move({ prefill, sender, connection }: Pair, tokens: number[], chunk = 5, generation = 0): Promise<TransferReport> {
  const cache = await prefill.open(tokens);
  if (cache === null) throw new Error('no room for the prompt');
  const note = JSON.stringify(tokens);
  const transfer = sender.send(connection, {
    request: 'a request',
    generation,
    tokens,
    note,
    pages: cache,
    release: () => cache.close(),
  });
  transfer.progress(cache.historyLength);
  while (cache.status === 'active' && cache.historyLength < tokens.length) {
    expect(prefill.step(cache, tokens, cache.historyLength, Math.min(tokens.length, cache.historyLength + chunk))).toBe(true);
    transfer.progress(cache.historyLength);
    await new Promise(setImmediate);
  }
  return transfer.done;
}

/** The request is here, whole, and what it published is, too. */
async function expectWhole(pair: Pair, tokens: number[]): Promise<void> {
  expect(pair.failed).toEqual([]);
  const [{ cache }] = pair.arrived;
  expect([cache.status, cache.historyLength, cache.capacity]).toEqual(['active', tokens.length, tokens.length]);
  expect(pair.decode.faults(cache, tokens)).toEqual([]);
  expect(await pair.decode.publishedFaults(tokens)).toEqual([]);
  // It goes on as if it had always been here.
  const longer = [...tokens, ...seq(9, 1)];
  expect(pair.decode.step(cache, longer, tokens.length, longer.length)).toBe(true);
  expect(pair.decode.faults(cache, longer)).toEqual([]);
}

const policies: readonly ReusePolicy[] = ['required', 'optional', 'private'];
const mixes = policies.flatMap((key) => policies.flatMap((value) => policies.map((state) => [key, value, state] as const)));

describe('a request that moves is whole on the other side, and no byte is sent that was there', () => {
  test.each(mixes)('with keys %s, values %s and state %s', async (key, valuePolicy, state) => {
    const layers: StampedLayer[] = [
      { kind: 'full', policy: key, valuePolicy },
      { kind: 'window', policy: key, valuePolicy, windowSize: 6, sinks: 2 },
      { kind: 'state', policy: state },
    ];
    for (const numTokens of [1, 7, 16, 22]) {
      for (const warm of [0, 3, 14]) {
        const pair = await pairOf({ layers });
        const tokens = seq(numTokens);
        if (warm > 0) await pair.decode.leave([...tokens, ...seq(4, 2)].slice(0, warm), [2, 4]);
        const report = await move(pair, tokens);
        expect(report.outcome).toEqual({ kind: 'complete' });
        for (const group of report.groups)
          expect([group.bytesMoved, group.pagesMoved]).toEqual([group.bytesLacked, group.pagesLacked]);
        await expectWhole(pair, tokens);
        expect(pair.arrived[0].report.groups).toEqual(report.groups);
      }
    }
  });

  test('to a receiver that has the keys and not the state, the state alone', async () => {
    const layers: StampedLayer[] = [{ kind: 'full' }, { kind: 'state' }, { kind: 'window', policy: 'private', windowSize: 4 }];
    const pair = await pairOf({ layers });
    const tokens = seq(17);
    await pair.decode.leave([...tokens, 900, 901], []);
    const { groups } = await move(pair, tokens);
    const moved = Object.fromEntries(
      groups.map(({ lifecycle, pagesMoved }) => [`${lifecycle.kind} ${lifecycle.policy}`, pagesMoved]),
    );
    expect(moved).toEqual({ 'attention required': 0, 'attention private': 2, 'ssm required': 1 });
    await expectWhole(pair, tokens);
  });

  test('while the prompt is read, page after page', async () => {
    const pair = await pairOf({ layers: [{ kind: 'full' }] });
    const tokens = seq(16);
    const cache = await pair.prefill.open(tokens);
    if (cache === null) throw new Error('no room');
    const transfer = pair.sender.send(pair.connection, {
      request: 'r',
      generation: 0,
      tokens,
      note: JSON.stringify(tokens),
      pages: cache,
      release: () => cache.close(),
    });
    for (const end of [4, 8, 12]) {
      pair.prefill.step(cache, tokens, end - 4, end);
      transfer.progress(end);
      await expect.poll(() => pair.connection.bytesInFlight).toBe(0);
      await expect.poll(() => pair.receiver.numHolding).toBe(1);
    }
    expect(transfer.outcome).toBeUndefined();
    expect(pair.arrived).toEqual([]);
    pair.prefill.step(cache, tokens, 12, 16);
    transfer.progress(16);
    expect((await transfer.done).outcome).toEqual({ kind: 'complete' });
    await expectWhole(pair, tokens);
  });

  test('in parts, where a page is larger than what can be sent at a time', async () => {
    const layers: StampedLayer[] = Array.from({ length: 6 }, () => ({ kind: 'full' }) as const);
    const pair = await pairOf({ layers }, { layers }, { maxPagesBytes: 100 });
    const tokens = seq(18);
    const { outcome, groups } = await move(pair, tokens);
    expect([outcome.kind, groups[0].pagesMoved, groups[0].bytesMoved]).toEqual(['complete', 5, groups[0].bytesLacked]);
    await expectWhole(pair, tokens);
  });

  test('of which nobody else is to have anything', async () => {
    const pair = await pairOf({ layers: [{ kind: 'full' }, { kind: 'state' }] }, undefined, { admission: { publish: false } });
    const tokens = seq(14);
    expect((await move(pair, tokens)).outcome.kind).toBe('complete');
    expect(pair.decode.manager.probeReuse(Uint32Array.from(tokens))).toBe(0);
    expect(pair.decode.faults(pair.arrived[0].cache, tokens)).toEqual([]);
  });
});

describe('layouts that differ', () => {
  const layers: StampedLayer[] = [{ kind: 'full' }, { kind: 'window', windowSize: 6 }, { kind: 'state', policy: 'optional' }];

  test.each<[string, Partial<StampedOptions>, Partial<StampedOptions>]>([
    ['in order, slots and pages of a block', {}, { reversed: true, keyPages: 2 }],
    ['in tokens of a block, into smaller ones', { tokensPerBlock: 8 }, { tokensPerBlock: 4 }],
    ['in the type of numbers, to halves', { dtype: 'f32' }, { dtype: 'f16' }],
    ['in the type of numbers, from halves', { dtype: 'f16' }, { dtype: 'f32' }],
    ['in heads, of which one goes', { heads: [0, 2] }, { heads: [1, 2] }],
    ['in all of it', { tokensPerBlock: 8, dtype: 'f16' }, { tokensPerBlock: 2, heads: [0, 1], reversed: true, keyPages: 2 }],
    [
      'in policies',
      {},
      { layers: [{ kind: 'full', valuePolicy: 'optional' }, { kind: 'window', windowSize: 5 }, { kind: 'state' }] },
    ],
    ['in tokens of a block without windows, into larger ones', { tokensPerBlock: 4, layers: [{ kind: 'full' }] }, { tokensPerBlock: 8, layers: [{ kind: 'full' }] }], // biome-ignore format: a row
    ['in tokens of a block without windows, that do not divide each other', { tokensPerBlock: 6, layers: [{ kind: 'full' }] }, { tokensPerBlock: 4, layers: [{ kind: 'full' }] }], // biome-ignore format: a row
  ])('%s are mapped', async (_, from, to) => {
    for (const numTokens of [3, 8, 21]) {
      const pair = await pairOf({ layers, ...from }, { layers, ...to });
      const tokens = seq(numTokens);
      await pair.decode.leave(tokens.slice(0, 9), []);
      const report = await move(pair, tokens);
      expect(report.outcome).toEqual({ kind: 'complete' });
      for (const { bytesMoved, bytesLacked } of report.groups) expect(bytesMoved).toBe(bytesLacked);
      await expectWhole(pair, tokens);
    }
  });

  test.each<[string, RegExp, Partial<StampedOptions>, Partial<StampedOptions>, boolean?]>([
    ['without forms', /no form that says how to cut/, { tokensPerBlock: 8, layers: [{ kind: 'full' }] }, { layers: [{ kind: 'full' }], heads: [0, 1], tokensPerBlock: 16 }, false], // biome-ignore format: a row
    ['in heads that the sender has not', /has heads 0 to 2 there/, { heads: [1, 2] }, {}],
    [
      'in a longer window',
      /sees 6 tokens here and 8 there/,
      {},
      { layers: [layers[0], { kind: 'window', windowSize: 8 }, layers[2]] },
    ],
    ['in larger blocks of a window', /no whole blocks of 8 there/, {}, { tokensPerBlock: 8 }],
    ['in what is private', /private pages stay unpublished/, {}, { layers: [layers[0], layers[1], { kind: 'state', policy: 'private' }] }], // biome-ignore format: a row
    ['in layers', /layer 2, role "conv_state" is only where the request comes from/, {}, { layers: layers.slice(0, 2) }],
  ])('%s are refused before anything is held', async (_, reason, from, to, withForms = true) => {
    const pair = await pairOf({ layers, ...from }, { layers, ...to }, { withForms });
    const report = await move(pair, seq(8));
    expect(report).toMatchObject({ outcome: { kind: 'refused', reason: expect.stringMatching(reason) }, groups: [] });
    expect(pair.receiver.numHolding).toBe(0);
    expect(pair.decode.manager.statistics().openRequests).toBe(0);
  });
});

describe('a request is refused in a round trip, and the sender lets go at once', () => {
  const layers: StampedLayer[] = Array.from({ length: 20 }, () => ({ kind: 'full' }));
  test.each<[string, RegExp, Parameters<typeof pairOf>[1], Parameters<typeof pairOf>[2]]>([
    ['when there is no room', /there is no room for 4000 tokens now/, { layers, quota: 1 << 16 }, {}],
    ['for another model', /one of model a model, and this is another/, { layers }, { model: 'another' }],
    ['for other tokens', /has other tokens here/, { layers }, { admission: { tokens: seq(4000, 1) } }],
    ['under another scope', /or another scope/, { layers }, { admission: { scope: { salt: 1 } } }],
    ['that is shorter here', /has 5 tokens here/, { layers }, { admission: { tokens: seq(5) } }],
    ['that the worker does not want', /too late/, { layers }, { admission: { refuse: 'too late' } }],
  ])('%s', async (_, reason, to, more) => {
    const pair = await pairOf({ layers, debugChecks: false }, { debugChecks: false, ...to } as StampedOptions, more);
    const report = await move(pair, seq(4000), 4000);
    expect(report.outcome).toMatchObject({ kind: 'refused', reason: expect.stringMatching(reason) });
    expect(report.groups).toEqual([]);
    expect(pair.decode.leaks()).toEqual([]);
  });
});

describe('tries of a request', () => {
  const layers: StampedLayer[] = [{ kind: 'full' }];

  test('end when a later one begins, and an earlier one is refused', async () => {
    const pair = await pairOf({ layers });
    const tokens = seq(12);
    const first = await pair.prefill.open(tokens);
    if (first === null) throw new Error('no room');
    const options = { request: 'a request', tokens, note: JSON.stringify(tokens), pages: first, release: () => first.close() };
    const held = pair.sender.send(pair.connection, { ...options, generation: 1 });
    await expect.poll(() => pair.receiver.numHolding).toBe(1);
    const again = () => pair.sender.send(pair.connection, { ...options, generation: 1 });
    expect(again).toThrow(expect.objectContaining({ code: 'invalid-transfer-options' }));
    expect((await move(pair, tokens, 5, 2)).outcome).toEqual({ kind: 'complete' });
    expect((await held.done).outcome).toMatchObject({ kind: 'aborted', by: 'here' });
    await expectWhole({ ...pair, failed: [] }, tokens);
    expect(pair.failed).toMatchObject([{ outcome: { kind: 'aborted' } }]);
  });

  test('are no more than may be', async () => {
    const pair = await pairOf({ layers });
    const sender = new TransferSender({
      manager: pair.prefill.manager,
      device: pair.prefill.device,
      modelFingerprint: MODEL,
      maxTransfers: 2,
    });
    let released = 0;
    const send = (request: string) =>
      sender.send(pair.connection, {
        request,
        generation: 0,
        tokens: [1],
        pages: { basePageIndices: () => new Int32Array(0), ssmBlockBaseIndex: () => -1 },
        release: () => released++,
      });
    send('a');
    send('b');
    expect(() => send('c')).toThrow(expect.objectContaining({ code: 'too-many-transfers' }));
    sender.close();
    expect([sender.numOpen, released]).toEqual([0, 2]);
    await expect.poll(() => pair.receiver.numOpen).toBe(0);
  });
});

test.each(['sender', 'receiver'] as const)(
  'an abort of the %s while pages come leaves nothing held, and a retry works',
  async (who) => {
    const pair = await pairOf({ layers: [{ kind: 'full' }, { kind: 'state' }] });
    const tokens = seq(30);
    const cache = await pair.prefill.open(tokens);
    if (cache === null) throw new Error('no room');
    const transfer = pair.sender.send(pair.connection, {
      request: 'a request',
      generation: 0,
      tokens,
      note: JSON.stringify(tokens),
      pages: cache,
      release: () => cache.close(),
    });
    pair.prefill.step(cache, tokens, 0, 12);
    transfer.progress(12);
    await expect.poll(() => pair.receiver.numHolding).toBe(1);
    if (who === 'sender') transfer.abort('the client left');
    else expect(pair.receiver.abort('a request', 'the client left')).toBe(true);
    expect((await transfer.done).outcome).toMatchObject({ kind: 'aborted', by: who === 'sender' ? 'here' : 'there' });
    await expect.poll(() => pair.receiver.numHolding).toBe(0);
    expect([...pair.prefill.leaks(), ...pair.decode.leaks()]).toEqual([]);
    expect(pair.failed).toHaveLength(1);
    expect((await move(pair, tokens, 7, 1)).outcome).toEqual({ kind: 'complete' });
    await expectWhole({ ...pair, failed: [] }, tokens);
  },
);
