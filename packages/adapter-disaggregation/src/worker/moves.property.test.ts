import type { ReusePolicy } from '@bufferwise/core-policy';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ArrivedRequest } from './incoming-transfer.ts';
import type { OutgoingTransfer } from './outgoing-transfer.ts';
import { SimulatedConnection, SimulatedTime } from './simulated-connection-rig.ts';
import { type StampedLayer, StampedWorker } from './stamped-worker-rig.ts';
import { TransferReceiver } from './transfer-receiver.ts';
import { TransferSender } from './transfer-sender.ts';

/** How many; `BUFFERWISE_FUZZ=5000000` for a long run. Each is replayed by its seed and path, which a failure tells. */
const RUNS = Number(process.env.BUFFERWISE_FUZZ ?? 100_000) / 100;
const MOST_TRIES = 4;
const TIMES = { leaseMs: 1000, retryMs: 100 };
const STEP_MS = 15;

const policy = fc.constantFrom<ReusePolicy>('required', 'required', 'optional', 'private');
const layer: fc.Arbitrary<StampedLayer> = fc.oneof(
  fc.record({ kind: fc.constant('full' as const), policy, valuePolicy: policy }),
  fc.record({
    kind: fc.constant('window' as const),
    policy,
    valuePolicy: policy,
    windowSize: fc.constantFrom(3, 5, 9),
    sinks: fc.constantFrom(0, 0, 3),
  }),
  fc.record({ kind: fc.constant('state' as const), policy }),
);
const side = fc.constantFrom('sender' as const, 'receiver' as const);
const anyRun = fc.record({
  seed: fc.nat(),
  layers: fc.array(layer, { minLength: 1, maxLength: 3 }),
  numTokens: fc.integer({ min: 1, max: 26 }),
  chunk: fc.integer({ min: 1, max: 9 }),
  here: fc.array(fc.integer({ min: 1, max: 30 }), { maxLength: 2 }),
  there: fc.array(fc.integer({ min: 1, max: 30 }), { maxLength: 3 }),
  blocks: fc.constantFrom([4, 4], [4, 4], [8, 4], [4, 2]),
  partBytes: fc.constantFrom(64, 200, 1 << 16),
  trouble: fc.record({
    loss: fc.constantFrom(0, 5, 30),
    duplication: fc.constantFrom(0, 10, 40),
    truncation: fc.constantFrom(0, 5, 20),
    maxDelayMs: fc.constantFrom(0, 10, 200),
    calmAtMs: fc.constantFrom(0, 300, 1500),
  }),
  cut: fc.option(fc.record({ atMs: fc.nat(300), isTold: fc.boolean() })),
  abort: fc.option(fc.record({ side, atMs: fc.nat(300) })),
  preempts: fc.option(fc.nat(200)),
  isFull: fc.constantFrom(false, false, false, true),
});

type Run = typeof anyRun extends fc.Arbitrary<infer T> ? T : never;

/** A prompt that is computed on one worker and moves to another, whatever the network and the clients do meanwhile. */
async function play(run: Run): Promise<void> {
  const { layers, numTokens, chunk, blocks, trouble } = run;
  const time = new SimulatedTime(run.seed);
  const tokens = Array.from({ length: numTokens }, (_, i) => i * 7);
  const options = { layers, debugChecks: false };
  const prefill = new StampedWorker({ ...options, tokensPerBlock: blocks[0] });
  const decode = new StampedWorker({ ...options, tokensPerBlock: blocks[1] });
  const others = [...tokens, ...Array.from({ length: 8 }, (_, i) => 1000 + i)];
  for (const length of run.here) await prefill.leave(others.slice(0, length), [length >> 1]);
  for (const length of run.there) await decode.leave(others.slice(0, length), [length >> 1]);

  const shared = { modelFingerprint: 'any', times: TIMES, clock: time, maxPagesBytes: run.partBytes };
  const sender = new TransferSender({ ...shared, manager: prefill.manager, device: prefill.device, forms: prefill.forms });
  const arrived: ArrivedRequest[] = [];
  const receiver = new TransferReceiver({
    ...shared,
    manager: decode.manager,
    device: decode.device,
    forms: decode.forms,
    admit: () => (run.isFull ? { refuse: 'full' } : { tokens, arrived: (request) => arrived.push(request) }),
  });
  const connections: SimulatedConnection[] = [];
  const serving: Promise<void>[] = [];
  const connect = () => {
    const [here, there] = SimulatedConnection.pair(time, trouble);
    connections.push(here, there);
    serving.push(receiver.serve(there));
    return here;
  };

  let connection = connect();
  const tries: OutgoingTransfer[] = [];
  let released = 0;
  let cutBefore = false;
  const faults: string[] = [];
  const begin = async () => {
    const cache = await prefill.open(tokens);
    if (cache === null) throw new Error('the prefill worker has no room');
    let away = false;
    const transfer = sender.send(connection, {
      request: 'a request',
      generation: tries.length,
      tokens,
      pages: {
        basePageIndices: (groupId) => (away ? new Int32Array(0) : cache.basePageIndices(groupId)),
        ssmBlockBaseIndex: (groupId) => (away ? -1 : cache.ssmBlockBaseIndex(groupId)),
      },
      release: () => {
        released++;
        cache.close();
      },
      wake: () => {
        // As when a request is brought back whose pages were wanted by others.
        if (!away) return;
        time.after(STEP_MS, () => {
          away = false;
          transfer.progress(cache.historyLength);
        });
      },
    });
    tries.push(transfer);
    void transfer.done.then(({ outcome, groups }) => {
      if (outcome.kind === 'complete' && trouble.calmAtMs === 0)
        for (const { bytesMoved, bytesLacked } of groups) if (bytesMoved !== bytesLacked) faults.push('bytes went in vain');
      if (outcome.kind !== 'lost' || tries.length === MOST_TRIES) return;
      if (cutBefore) connection = connect();
      time.after(10, () => void begin());
    });
    if (run.preempts !== null) time.after(run.preempts, () => { away = true; }); // biome-ignore format: one of many
    const step = () => {
      if (cache.status !== 'active' || !transfer.isOpen) return;
      const from = cache.historyLength;
      const to = Math.min(numTokens, from + chunk);
      if (to > from && !prefill.step(cache, tokens, from, to)) throw new Error('no room for a chunk');
      transfer.progress(cache.historyLength);
      if (to < numTokens) time.after(STEP_MS, step);
    };
    transfer.progress(cache.historyLength);
    time.after(STEP_MS, step);
  };
  await begin();
  if (run.cut !== null) {
    const { atMs, isTold } = run.cut;
    time.after(atMs, () => {
      cutBefore = true;
      connection.end(isTold);
    });
  }
  if (run.abort !== null) {
    const { atMs, side } = run.abort;
    time.after(atMs, () => {
      if (side === 'receiver') receiver.abort('a request', 'the client left');
      else for (const transfer of tries) transfer.abort('the client left');
    });
  }
  await time.run(trouble.calmAtMs + MOST_TRIES * 6 * TIMES.leaseMs);

  expect(faults).toEqual([]);
  expect([sender.numOpen, receiver.numOpen, receiver.numHolding]).toEqual([0, 0, 0]);
  expect(released).toBe(tries.length);
  const outcomes = tries.map(({ outcome }) => outcome?.kind);
  if (outcomes.includes('complete')) expect(arrived.length).toBeGreaterThan(0);
  const isUndisturbed = run.abort === null && !run.isFull && run.cut === null && trouble.calmAtMs === 0;
  if (isUndisturbed) expect([outcomes, arrived.length]).toEqual([['complete'], 1]);
  if (run.isFull) expect(arrived).toEqual([]);
  for (const { cache } of arrived) {
    expect(decode.faults(cache, tokens)).toEqual([]);
    cache.close();
  }
  expect(await decode.publishedFaults(tokens)).toEqual([]);
  for (const each of connections) each.end(false);
  await Promise.all(serving);
  expect([...prefill.leaks(), ...decode.leaks()]).toEqual([]);
  receiver.close();
  sender.close();
}

test('whatever the network and the clients do, a request comes whole or not at all, and nobody holds anything', async () => {
  await fc.assert(fc.asyncProperty(anyRun, play), { numRuns: RUNS });
});
