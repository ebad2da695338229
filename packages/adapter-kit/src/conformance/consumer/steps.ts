import { defineCacheConfig } from '@bufferwise/core-policy';
import { StorageLayout } from '@bufferwise/scratch-allocator';
import { blocksCross } from '../../consumer/check-layout.ts';
import { ensure } from '../assertions.ts';
import type { ConsumerMix } from './harness.ts';
import { endsOf, ensureWarm } from './reuse.ts';
import { ensureSameRows } from './sequence.ts';
import type { ConsumerStage } from './stage.ts';
import { hasWindow, story, textOf } from './stories.ts';

export const scratch = story({
  name: 'reads and writes scratch blocks, and leaves nothing in them that is needed later',
  flag: 'scratch',
  options: { scratch: true },
  fits: (mix) => hasWindow(mix) && !hasCrossing(mix),
  tell: prefillInScratch,
});

export const crossingScratch = story({
  name: 'reads and writes scratch blocks that begin in one slot and end in the next',
  flag: 'crossingScratch',
  options: { scratch: true },
  fits: hasCrossing,
  tell: prefillInScratch,
});

export const rewinds = story({
  name: 'forgets drafts: a step may begin before tokens that an earlier one wrote',
  flag: 'rewind',
  async tell(stage) {
    const tokens = textOf(1, 34);
    const expected = await stage.coldByToken(tokens);
    const sequence = await stage.open(tokens);
    await stage.run(sequence, [9]);
    // So many drafts each, of which so many are right.
    for (const [drafts, accepted] of [
      [3, 1],
      [1, 0],
      [4, 4],
      [5, 2],
      [2, 1],
    ]) {
      const begin = sequence.next;
      // The token itself is always right; the drafts stand behind it.
      const right = 1 + accepted;
      const end = begin + 1 + drafts;
      sequence.tokens = [...tokens.slice(0, begin + right), ...textOf(100 + begin, end - begin - right)];
      await stage.step([{ sequence, end, snapshot: false }]);
      sequence.tokens = tokens;
      sequence.rows.length = begin + right;
      sequence.next = begin + right;
      // The state is the one behind the drafts, so no snapshot is true here.
      sequence.commit(begin + right, { snapshot: false });
      ensureSameRows(
        sequence.rows,
        expected.slice(0, begin + right),
        0,
        stage.tolerance,
        `${accepted} of ${drafts} drafts accepted`,
      );
    }
    await stage.run(sequence);
    ensureSameRows(sequence.rows, expected, 0, stage.tolerance, 'the tokens behind the last drafts');
    sequence.kv.close();
    await ensureWarm(stage, tokens, expected, 'a prompt that was written with drafts');
  },
});

export const beams = story({
  name: 'puts out for each beam what it does for its tokens alone',
  flag: 'beams',
  async tell(stage) {
    const common = textOf(1, 2 * stage.tokensPerBlock + 3);
    const sequence = await stage.open(common, { lookup: false });
    await stage.run(sequence, [5, common.length]);
    const { kv } = sequence;
    ensure(kv.forkBeams(2), 'the suite found no room for beams');
    let texts = [common, common];
    for (let turn = 0; turn < 8; turn++) {
      if (turn === 4) {
        // Both go on from the second, as a beam search may choose.
        kv.reorderBeams([1, 1]);
        texts = [texts[1], texts[1]];
      }
      texts = texts.map((text, beam) => [...text, 10_000 + 100 * turn + beam]);
      const end = texts[0].length;
      const rows = await stage.step(texts.map((tokens, index) => ({ sequence, end, beam: { index, tokens } })));
      kv.resize(end, end);
      sequence.next = end;
      for (const [beam, tokens] of texts.entries()) {
        const expected = await stage.cold(tokens);
        const found = [...expected.slice(0, -1), rows[beam][0]];
        ensureSameRows(found, expected, end - 1, stage.tolerance, `beam ${beam} in turn ${turn}`);
      }
    }
    kv.close();
  },
});

/** Whether a scratch block of some layer may begin in one slot and end in the next. */
export function hasCrossing({ layers }: ConsumerMix): boolean {
  const layout = StorageLayout.fromConfig(
    defineCacheConfig({ tokensPerBlock: 16, layers, tiers: [{ tier: 'device', quota: 1 << 30 }] }),
  );
  return layers.some(
    (layer) =>
      layer.type === 'attention' &&
      layer.slidingWindowSize !== undefined &&
      layer.buffers.some(({ role, size }) => size > 0 && blocksCross(layout, layer.layerId, role)),
  );
}

async function prefillInScratch(stage: ConsumerStage<unknown>): Promise<void> {
  for (const [id, ends] of [[41], [16, 41], [3, 30, 41], endsOf(41, 12)].entries()) {
    const tokens = textOf(id, 41);
    const expected = await stage.coldByToken(tokens);
    const sequence = await stage.open(tokens);
    await stage.run(sequence, ends);
    ensureSameRows(sequence.rows, expected, 0, stage.tolerance, `a prompt in steps that end at ${ends.join(', ')}`);
    // Decode steps read what the prefill left.
    sequence.tokens = [...tokens, ...textOf(60 + id, 4)];
    const longer = await stage.coldByToken(sequence.tokens);
    for (let end = 42; end <= 45; end++) await stage.run(sequence, [end]);
    ensureSameRows(sequence.rows, longer, 0, stage.tolerance, 'tokens behind the prompt');
    sequence.kv.close();
    const branch = [...tokens.slice(0, 32), ...textOf(80 + id, 11)];
    await ensureWarm(stage, branch, await stage.coldByToken(branch), 'a prompt that leaves the line');
  }
}
