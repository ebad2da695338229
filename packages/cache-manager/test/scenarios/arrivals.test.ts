import type { LayerGroupId } from '@bufferwise/core-policy';
import { describe, expect } from 'vitest';
import type { KvCache } from '../../src/index.ts';
import { scenario } from '../support/scenario.ts';
import { full, model, recurrent, type Stage, seq, windowed } from '../support/stage.ts';

const F = 0 as LayerGroupId;
const S = 1 as LayerGroupId;

/** A request with room for all of its tokens, of which only the match is there. */
async function arriving(stage: Stage, numTokens: number): Promise<KvCache> {
  const kv = stage.manager.createKvCache({ tokens: seq(numTokens) });
  expect(await kv.resume()).toBe(true);
  expect(kv.resize(numTokens, numTokens)).toBe(true);
  return kv;
}
const take = (kv: KvCache) => kv.takePublished(seq(kv.historyLength).slice(kv.numCommittedTokens));

describe('a request that is filled from outside takes of each group what there is', () => {
  scenario('keys where only a state is missing, and none twice', model([full(), recurrent()]), async (stage) => {
    await stage.donate(seq(18), [18]);
    const before = stage.slots(F).free;
    const kv = await arriving(stage, 14);
    expect(kv.numCommittedTokens).toBe(0);
    expect(take(kv)).toMatchObject([
      // The tail of the donor's block 3 is good for the two tokens that are wanted of it: it is copied.
      { groupId: F, complete: true, endpoint: 14, coverage: [[0, 14]] },
      { groupId: S, complete: false, endpoint: 0, coverage: [] },
    ]);
    expect(stage.slots(F).free).toBe(before - 1);
    kv.close();
  });

  scenario('a state where only a window is missing', model([full(), recurrent(), windowed(6)]), async (stage) => {
    await stage.donate(seq(12), [8, 12]);
    stage.drop(2, seq(12), 1);
    const kv = await arriving(stage, 8);
    expect(take(kv)).toMatchObject([
      { complete: true, coverage: [[0, 8]] },
      { complete: true, endpoint: 8, coverage: [[0, 8]] },
      { complete: false, endpoint: 0, coverage: [[0, 4]] },
    ]);
    kv.close();
  });

  scenario('of a window what is live, between holes', model([full(), windowed(12)]), async (stage) => {
    await stage.donate(seq(24), [8, 16, 24]);
    stage.drop(1, seq(24), 3);
    const kv = await arriving(stage, 24);
    expect(take(kv)[1]).toMatchObject({ complete: false, coverage: [[16, 24]] });
    kv.close();
  });

  scenario('nothing of private groups', model([full(), full('private'), recurrent('private')]), async (stage) => {
    await stage.donate(seq(8), [8]);
    const kv = await arriving(stage, 8);
    expect(take(kv).map(({ complete }) => complete)).toEqual([true, false, false]);
    kv.close();
  });
});

scenario('a request that cannot be filled now is left as it is', model([full(), recurrent()]), async (stage) => {
  const kv = stage.manager.createKvCache({ tokens: seq(8) });
  const refusal = (code: string) => expect.objectContaining({ name: 'StateError', code });
  expect(() => kv.takePublished(seq(8))).toThrow(refusal('take-suspended'));
  await kv.resume();
  kv.resize(8, 4);
  expect(() => kv.takePublished(seq(8))).toThrow(refusal('take-lengths'));
  kv.resize(8, 8);
  expect(() => kv.takePublished(seq(7))).toThrow(refusal('take-lengths'));
  expect(() => kv.takePublished([0, 1, 2, 3, 4, 5, 6, -1])).toThrow(expect.objectContaining({ code: 'invalid-token' }));
  kv.beamWidth = 2;
  expect(() => kv.takePublished(seq(8))).toThrow(refusal('several-beams'));
  kv.close();
  expect(() => kv.takePublished(seq(8))).toThrow(refusal('take-closed'));
});
