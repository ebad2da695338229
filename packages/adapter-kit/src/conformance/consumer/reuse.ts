import { dropPage } from '@bufferwise/cache-manager/testing';
import { ensure } from '../assertions.ts';
import { ensureSameRows, type Row, type Sequence, type Tokens } from './sequence.ts';
import type { ConsumerStage } from './stage.ts';
import { hasState, story, textOf } from './stories.ts';

export const coldInPieces = story({
  name: 'puts out the same whether a prompt comes whole, in pieces, or token by token',
  async tell(stage) {
    for (const [id, piece] of [1, 2, 3, 5, 8, 13].entries()) {
      const tokens = textOf(id, 41);
      const expected = await stage.cold(tokens);
      const sequence = await stage.open(tokens);
      await stage.run(sequence, endsOf(tokens.length, piece));
      ensureSameRows(sequence.rows, expected, 0, stage.tolerance, `pieces of ${piece} tokens`);
      sequence.kv.close();
    }
  },
});

export const warmIsCold = story({
  name: 'puts out the same with a matched prefix as without, wherever the match ends',
  async tell(stage) {
    let matchedInAll = 0;
    for (let split = 1; split < 22; split++) {
      const tokens = textOf(split, 23);
      const expected = await stage.cold(tokens);
      await stage.serve([...tokens.slice(0, split), 7]);
      matchedInAll += await ensureWarm(stage, tokens, expected, `a prompt whose first ${split} tokens are there`);
      await ensureWarm(stage, tokens, expected, 'the same prompt again');
    }
    ensure(matchedInAll > 0 || !limitsMatches(stage), 'no prompt matched anything, so nothing was proven');
  },
});

export const evicted = story({
  name: 'puts out the same when pages were evicted in between',
  async tell(stage) {
    const tokens = textOf(1, 30);
    const expected = await stage.cold(tokens);
    for (let block = 0; block < Math.floor(tokens.length / stage.tokensPerBlock); block++) {
      for (const groupId of stage.manager.bufferGrouping.keys()) {
        await stage.serve(tokens, endsOf(tokens.length, 6));
        dropPage(stage.manager, { tokens, block, groupId });
        await ensureWarm(stage, tokens, expected, `a prompt without the page of block ${block} in group ${groupId}`);
      }
    }
    await stage.evictBy(textOf(2, 9));
    await ensureWarm(stage, tokens, expected, 'a prompt after another request took all the room');
  },
});

export const suspended = story({
  name: 'goes on after a suspension as if there had been none',
  async tell(stage) {
    const tokens = textOf(1, 26);
    const expected = await stage.cold(tokens);
    for (const at of [3, 8, 17]) {
      const sequence = await stage.open([...tokens.slice(0, -1), 5000 + at]);
      sequence.tokens = tokens;
      if (sequence.kv.numCommittedTokens < at) await stage.run(sequence, [at]);
      sequence.kv.suspend();
      await stage.serve(textOf(50 + at, 30));
      ensure(await sequence.kv.resume(), 'the suite found no room to resume');
      await stage.run(sequence);
      ensureSameRows(sequence.rows, expected, sequence.matched, stage.tolerance, `a prompt that was suspended at ${at}`);
      sequence.kv.close();
    }
  },
});

export const partialBlocks = story({
  name: 'continues inside a block that others share, without touching theirs',
  flag: 'partialBlocks',
  async tell(stage) {
    const shared = textOf(1, 4 * stage.tokensPerBlock + 2);
    await stage.serve(shared);
    const branches = [1, 2, 3].map((id) => [...shared, ...textOf(10 + id, 7)]);
    const expected: (readonly Row[])[] = [];
    for (const tokens of branches) expected.push(await stage.cold(tokens));
    // All are open at once, and step in turns.
    const open: Sequence[] = [];
    for (const tokens of branches) open.push(await stage.open(tokens));
    for (const sequence of open) {
      ensure(
        sequence.matched === shared.length || !limitsMatches(stage),
        `a prompt matched ${sequence.matched} of ${shared.length} tokens: the suite expected a match inside of a block`,
      );
    }
    for (let end = shared.length + 1; end <= shared.length + 7; end++)
      for (const sequence of open) await stage.run(sequence, [end]);
    open.forEach((sequence, i) => {
      ensureSameRows(sequence.rows, expected[i], sequence.matched, stage.tolerance, `branch ${i} behind a shared partial block`);
      sequence.kv.close();
    });
  },
});

export const snapshots = story({
  name: 'continues from the snapshot of each count that was kept',
  flag: 'snapshots',
  fits: hasState,
  async tell(stage) {
    const tokens = textOf(1, 40);
    await stage.serve(tokens, [5, 8, 14, 15, 27, 40]);
    for (const count of [5, 8, 14, 15, 27]) {
      const branch = [...tokens.slice(0, count), ...textOf(20 + count, 9)];
      await ensureWarm(stage, branch, await stage.cold(branch), `a prompt that leaves the line after ${count} tokens`);
    }
  },
});

export const replayed = story({
  name: 'fills what was not reused from tokens given again, and others may use it then',
  flag: 'replay',
  async tell(stage) {
    const { manager, tokensPerBlock } = stage;
    const optional = stage.manager.bufferGrouping.flatMap((_, id) =>
      manager.lifecycles.get(id as Parameters<typeof manager.lifecycles.get>[0]).policy === 'optional' ? [id] : [],
    );
    const tokens = textOf(1, 6 * tokensPerBlock + 1);
    const expected = await stage.cold(tokens);
    const ends = [3 * tokensPerBlock, 6 * tokensPerBlock];
    await stage.serve(tokens, ends);
    for (const groupId of optional) {
      for (let block = 0; block < 6; block++) dropPage(manager, { tokens, block, groupId });
    }
    await ensureWarm(stage, tokens, expected, 'a prompt whose optional pages are gone');
    // Their pages are there again: whoever comes next gets them from the one that promised to rebuild.
    await ensureWarm(stage, tokens, expected, 'the next one');
    const longer = [...tokens.slice(0, 6 * tokensPerBlock), ...textOf(9, 5)];
    await ensureWarm(stage, longer, await stage.cold(longer), 'one that goes on elsewhere');
  },
});

/** Serves a prompt from what is there, and looks at what comes out. Answers how much matched. */
export async function ensureWarm(
  stage: ConsumerStage<unknown>,
  tokens: Tokens,
  expected: readonly Row[],
  what: string,
): Promise<number> {
  // Pages that were given back hold what others left in them: what should have been written anew is not there by luck.
  await stage.cold(tokens.map((token) => token + 1));
  const { rows, matched } = await stage.serve(tokens);
  ensureSameRows(rows, expected, matched, stage.tolerance, `${what} (${matched} tokens matched)`);
  return matched;
}

/** Ends of pieces of so many tokens. */
export function endsOf(length: number, piece: number): number[] {
  return Array.from({ length: Math.ceil(length / piece) }, (_, i) => Math.min(length, (i + 1) * piece));
}

/** Whether anything of the model limits a match; without, nothing is matched by itself. */
function limitsMatches({ manager }: ConsumerStage<unknown>): boolean {
  return manager.bufferGrouping.some(
    (_, id) => manager.lifecycles.get(id as Parameters<typeof manager.lifecycles.get>[0]).policy === 'required',
  );
}
