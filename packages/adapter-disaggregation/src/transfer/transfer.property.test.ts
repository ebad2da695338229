import { fullAttention, type ReusePolicy, slidingWindow, ssmState } from '@bufferwise/core-policy';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type MoveScenario, QUIET, simulateMove } from './simulated-move-rig.ts';
import type { TransferLayout } from './transfer-layout.ts';

/** How many; `BUFFERWISE_FUZZ=5000000` for a long run. */
const RUNS = Number(process.env.BUFFERWISE_FUZZ ?? 100_000) / 50;

function layoutWith(policy: ReusePolicy): TransferLayout {
  const group = (lifecycle: TransferLayout['groups'][number]['lifecycle'], pageBytes: number) => ({
    lifecycle,
    buffers: [{ layerId: 0, role: `of ${pageBytes} bytes`, size: pageBytes, expansion: 1 }],
    pageBytes,
  });
  return {
    tokensPerBlock: 4,
    groups: [
      group(fullAttention(), 16),
      group(slidingWindow(6, { policy, numSinkBlocks: 1 }), 8),
      group(ssmState(policy), 32),
      group(ssmState('private'), 4),
    ],
  };
}

const receiverGroup = fc
  .tuple(fc.nat(30), fc.nat(12), fc.nat(30))
  .map(([endpoint, begin, length]) => ({ endpoint, coverage: [[begin, begin + length]] as [number, number][] }));
const side = fc.constantFrom('sender' as const, 'receiver' as const);
const scenario: fc.Arbitrary<MoveScenario> = fc.record({
  seed: fc.nat(),
  handover: fc.integer({ min: 1, max: 30 }),
  receiver: fc.array(receiverGroup, { minLength: 4, maxLength: 4 }),
  loss: fc.constantFrom(0, 5, 30, 100),
  duplication: fc.constantFrom(0, 10, 50),
  truncation: fc.constantFrom(0, 5, 20),
  maxDelayMs: fc.constantFrom(0, 10, 300, 1500),
  calmAtMs: fc.constantFrom(0, 200, 1500, 6000),
  death: fc.option(fc.record({ side, atMs: fc.nat(400), noticed: fc.boolean() })),
  abort: fc.option(fc.record({ side, atMs: fc.nat(400) })),
  refuses: fc.constantFrom(false, false, false, true),
  allocationMs: fc.constantFrom(0, 5, 100, 2500),
  stepMs: fc.constantFrom(0, 5, 60),
});

/** What holds whatever the network, the workers and the clients do. */
function checkMove(layout: TransferLayout, run: MoveScenario): void {
  const result = simulateMove(layout, run);
  expect(result.faults).toEqual([]);
  expect({ sending: result.sendingHolds, receiving: result.receivingHolds }).toEqual({ sending: 0, receiving: 0 });
  if (run.death?.side !== 'sender') expect(result.sent).not.toContain(undefined);
  if (run.death?.side !== 'receiver') expect(result.received).not.toContain(undefined);
  if (result.sent.some((outcome) => outcome?.kind === 'complete')) expect(result.handedOver).toBeGreaterThan(0);
  if (run.death === null && run.abort === null && !run.refuses && run.calmAtMs === 0 && run.allocationMs < 1000)
    expect(result).toMatchObject({ sent: [{ kind: 'complete' }], handedOver: 1, bytesOfPages: result.bytesLacked });
}

describe('whatever the network does', () => {
  test.each(['required', 'optional', 'private'] as const)('a move ends cleanly, and nothing stays held (%s groups)', (policy) => {
    const layout = layoutWith(policy);
    fc.assert(
      fc.property(scenario, (run) => checkMove(layout, run)),
      { numRuns: RUNS },
    );
  });

  test('a network that is bad only for a while does not stop a move', () => {
    const layout = layoutWith('required');
    for (let seed = 0; seed < 300; seed++) {
      const receiver = Array.from({ length: 4 }, () => ({ endpoint: 0, coverage: [] }));
      const { sent, handedOver, faults } = simulateMove(layout, {
        ...QUIET,
        seed,
        handover: 21,
        receiver,
        loss: 40,
        duplication: 20,
        truncation: 10,
        maxDelayMs: 200,
        calmAtMs: 900, // biome-ignore format: one of many
      });
      expect(faults, `seed ${seed}`).toEqual([]);
      expect(sent.at(-1)?.kind, `seed ${seed}`).toBe('complete');
      expect(handedOver, `seed ${seed}`).toBeGreaterThan(0);
    }
  });
});

describe('an abort at any moment', () => {
  const layout = layoutWith('optional');
  const receiver = Array.from({ length: 4 }, () => ({ endpoint: 0, coverage: [] }));

  test.each(['sender', 'receiver'] as const)('of the %s leaves nothing held', (who) => {
    for (let atMs = 0; atMs < 200; atMs++) {
      const result = simulateMove(layout, { ...QUIET, seed: atMs, handover: 21, receiver, abort: { side: who, atMs } });
      expect(result, `at ${atMs} ms`).toMatchObject({ faults: [], sendingHolds: 0, receivingHolds: 0 });
    }
  });

  test('a refusal reaches the sender in a round trip, which lets go at once', () => {
    const result = simulateMove(layout, { ...QUIET, seed: 1, handover: 21, receiver, refuses: true });
    expect(result).toMatchObject({
      sent: [{ kind: 'refused', reason: 'no room' }],
      sendingHolds: 0,
      receivingHolds: 0,
      bytesOfPages: 0,
    });
  });
});
