import { describe, expect, test } from 'vitest';
import { full, model, recurrent, Stage, seq, windowed } from '../support/stage.ts';

const S = 1;
const hybrid = () => new Stage(model([full(), recurrent()]));

describe('the reason for a short match', () => {
  test('is none when all was found', async () => {
    const stage = hybrid();
    await stage.donate(seq(10), [10]);
    expect(stage.open(seq(10)).kv.matchLimits).toEqual([]);
    expect(stage.open().kv.matchLimits).toEqual([]);
    await stage.finish();
  });

  test('is that nobody published more', async () => {
    const stage = hybrid();
    await stage.donate(seq(10), [10]);
    expect(stage.open([...seq(10), 99]).kv.matchLimits).toEqual([{ reason: 'not-published', groupId: null, endpoint: 10 }]);
    expect(stage.open([77]).kv.matchLimits).toEqual([{ reason: 'not-published', groupId: null, endpoint: 0 }]);
    await stage.finish();
  });

  test('is a snapshot that was not taken where the paths part', async () => {
    const stage = hybrid();
    await stage.donate(seq(24), [8, 24]);
    const { kv } = stage.open([...seq(18), 99]);
    expect(kv.matchDepths).toEqual({ path: 18, withoutState: 18, usable: 8 });
    expect(kv.matchLimits).toEqual([
      { reason: 'not-published', groupId: null, endpoint: 18 },
      { reason: 'no-snapshot', groupId: S, endpoint: 8 },
    ]);
    expect(Object.isFrozen(kv.matchLimits)).toBe(true);
    await stage.finish();
  });

  test('is a window that is not whole, by its group', async () => {
    const stage = new Stage(model([full(), windowed(8)], { commitMinSnapshot: true }));
    await stage.donate(seq(40), [16, 40]);
    const { kv } = stage.open([...seq(30), 99]);
    expect(kv.matchLimits.map(({ reason, groupId }) => [reason, groupId])).toEqual([
      ['not-published', null],
      ['window-missing', 1],
    ]);
    expect(kv.matchLimits.at(-1)?.endpoint).toBe(kv.numCommittedTokens);
    await stage.finish();
  });

  test('is the backoff, or groups that have what they need at different ends', async () => {
    const stage = new Stage(model([windowed(4), recurrent()], { reuseMatchBackoff: 2 }));
    await stage.donate(seq(24), [8, 16, 24]);
    stage.drop(0, seq(8), 1);
    stage.dropSnapshot(S, seq(16));
    stage.dropSnapshot(S, seq(24));
    const { kv } = stage.open(seq(24));
    expect(kv.matchDepths.usable).toBe(0);
    expect(kv.matchLimits.map(({ reason }) => reason)).toEqual(['backoff', 'window-missing', 'no-snapshot', 'no-common-end']);
    await stage.finish();
  });
});

describe('a snapshot is worth having', () => {
  test('where the path was shared and could not be used, before the last token and at the end', async () => {
    const stage = hybrid();
    await stage.donate(seq(24), [8, 24]);
    const prompt = [...seq(18), 99, 98, 97];
    const first = await stage.start(prompt);
    expect(first.kv.snapshotPoints()).toEqual([18, 20, 21]);
    for (const end of first.kv.snapshotPoints()) expect(first.extend(prompt.slice(first.numComputed, end))).toBe(true);
    expect(first.kv.snapshotPoints()).toEqual([]);
    first.close();
    const second = stage.open([...seq(18), 55, 66]);
    expect(second.kv.numCommittedTokens).toBe(18);
    expect(second.kv.snapshotPoints()).toEqual([19, 20]);
    await stage.finish();
  });

  test('at turn borders and on the grid, as far as they are ahead', async () => {
    const stage = hybrid();
    await stage.donate(seq(10), [10]);
    const { kv } = stage.open(seq(40));
    expect(kv.snapshotPoints({ every: 16, turnBorders: [4, 10, 25, 41] })).toEqual([16, 25, 32, 39, 40]);
    expect(kv.snapshotPoints({ promptLength: 60 })).toEqual([59, 60]);
    expect(stage.open().kv.snapshotPoints({ every: 16 })).toEqual([]);
    await stage.finish();
  });

  test('not for less than is asked for', async () => {
    const stage = hybrid();
    await stage.donate(seq(24), [8, 24]);
    const { kv } = stage.open([...seq(10), 99, 98, 97]);
    expect([kv.snapshotPoints(), kv.snapshotPoints({ minGain: 2 })]).toEqual([
      [12, 13],
      [10, 12, 13],
    ]);
    await stage.finish();
  });

  test('where a block ends, for optional attention', async () => {
    const stage = new Stage(model([full(), windowed(4, 'optional'), recurrent()]));
    expect(stage.open(seq(15)).kv.snapshotPoints()).toEqual([12, 14, 15]);
    await stage.finish();
  });

  test('nowhere, when a match can end anywhere', async () => {
    const stage = new Stage(model([full(), windowed(4, 'private')]));
    expect(stage.open(seq(15)).kv.snapshotPoints({ every: 4 })).toEqual([]);
    expect(() => stage.open(seq(15)).kv.snapshotPoints({ every: 0 })).toThrow(
      expect.objectContaining({ code: 'invalid-snapshot-points' }),
    );
    await stage.finish();
  });
});

test('a later snapshot does not push out an earlier one of its block, and each is an end of its own', async () => {
  const stage = hybrid();
  await stage.donate(seq(12), [9, 10, 11, 12]);
  for (const end of [9, 10, 11, 12]) expect(stage.probe([...seq(end), 99])).toBe(end);
  await stage.finish();
});
