import { describe, expect, test } from 'vitest';
import { VOCAB } from './onnx/tiny-decoder.ts';
import {
  coldLogits,
  createRig,
  expectClose,
  finishPrompt,
  leaveBehind,
  type RigOptions,
  ROUNDING,
  someTokens,
  TOKENS_PER_BLOCK,
} from './support/rig.ts';

const PROMPT = someTokens(15);

/** Prompts that have the first `shared` tokens of another in common, and not one more. */
function parting(shared: number): number[] {
  return PROMPT.map((token, i) => (i === shared ? (token + 1) % VOCAB : token));
}

const exports: [string, RigOptions, number][] = [
  ['float32', {}, ROUNDING],
  ['float16', { kv: 'float16', logits: 'float16' }, 2e-3],
  ['no position_ids', { positionIds: false }, ROUNDING],
  ['num_logits_to_keep', { numLogitsToKeep: true }, ROUNDING],
  ['use_cache_branch', { cacheBranch: true }, ROUNDING],
];

describe.each(exports)('with an export: %s', (_, options, tolerance) => {
  test('a prompt that matched gives the logits it gives from nothing, whatever the length of the match', async () => {
    for (let shared = 0; shared < PROMPT.length; shared++) {
      const rig = await createRig(options);
      await leaveBehind(rig, parting(shared));
      const ranBefore = rig.session.tokensRun;
      const warm = await rig.decoder.open({ tokens: PROMPT });
      expect(warm.matched).toBe(shared);
      const logits = await finishPrompt(warm);
      expect(rig.session.tokensRun - ranBefore).toBe(PROMPT.length - shared);
      expectClose(logits, await coldLogits(PROMPT, options), tolerance);
    }
  });
});

test.each(['float32', 'float16'] as const)(
  '%s: a rest behind a match gives, to the bit, what it gives behind the run itself',
  async (kv) => {
    const rig = await createRig({ kv });
    for (let shared = 1; shared < PROMPT.length; shared++) {
      const scope = { salt: shared };
      const cold = await rig.decoder.open({ scope });
      await cold.forward(PROMPT.slice(0, shared));
      const expected = await cold.forward(PROMPT.slice(shared));
      const prefix = await rig.decoder.open({ scope: { salt: 100 + shared } });
      await prefix.forward(PROMPT.slice(0, shared));
      await prefix.close();
      const warm = await rig.decoder.open({ tokens: PROMPT, scope: { salt: 100 + shared } });
      expect(warm.matched).toBe(shared);
      expect(await finishPrompt(warm)).toEqual(expected);
      await Promise.all([cold.close(), warm.close()]);
    }
  },
);

test('the same prompt again runs its last token alone', async () => {
  const rig = await createRig();
  const cold = await leaveBehind(rig, PROMPT);
  rig.session.runs.length = 0;
  const warm = await leaveBehind(rig, PROMPT);
  expect(rig.session.runs).toEqual([1]);
  expectClose(warm, cold);
});

test('a second turn continues from the first one with its answer', async () => {
  const rig = await createRig();
  const first: number[] = [];
  for await (const token of rig.decoder.generate({ tokens: PROMPT, maxTokens: 6 })) first.push(token);
  // The last token was chosen and never run.
  const turn = [...PROMPT, ...first, 3, 1, 4];
  const second = await rig.decoder.open({ tokens: turn });
  expect(second.matched).toBe(PROMPT.length + first.length - 1);
  expectClose(await finishPrompt(second), await coldLogits(turn));
});

test('full blocks are there for others while their sequence is still open, the rest once it is closed', async () => {
  const rig = await createRig();
  const first = await rig.decoder.open({ tokens: PROMPT });
  await finishPrompt(first);
  const second = await rig.decoder.open({ tokens: PROMPT });
  expect(second.matched).toBe(PROMPT.length - (PROMPT.length % TOKENS_PER_BLOCK));
  await first.close();
  const third = await rig.decoder.open({ tokens: PROMPT });
  expect(third.matched).toBe(PROMPT.length - 1);
  const expected = await coldLogits(PROMPT);
  expectClose(await finishPrompt(second), expected);
  expectClose(await finishPrompt(third), expected);
});

test('a prefix that was evicted in between is run again, with the same logits', async () => {
  const rig = await createRig({ blocks: 6 });
  const cold = await leaveBehind(rig, PROMPT);
  await leaveBehind(rig, someTokens(23, 5));
  const ranBefore = rig.session.tokensRun;
  const warm = await rig.decoder.open({ tokens: PROMPT });
  expect(warm.matched).toBeLessThan(PROMPT.length - 1);
  expectClose(await finishPrompt(warm), cold);
  expect(rig.session.tokensRun - ranBefore).toBe(PROMPT.length - warm.matched);
});

test('pages that went to host memory come back', async () => {
  const rig = await createRig({ blocks: 6, moreTiers: [{ tier: 'host', quota: 1 << 20 }] });
  const cold = await leaveBehind(rig, PROMPT);
  await leaveBehind(rig, someTokens(23, 5));
  await rig.manager.settled();
  const warm = await rig.decoder.open({ tokens: PROMPT });
  expect(warm.matched).toBe(PROMPT.length - 1);
  expectClose(await finishPrompt(warm), cold);
});

test('scopes share nothing', async () => {
  const rig = await createRig();
  await leaveBehind(rig, PROMPT, { salt: 1 });
  expect((await rig.decoder.open({ tokens: PROMPT, scope: { salt: 2 } })).matched).toBe(0);
  expect((await rig.decoder.open({ tokens: PROMPT })).matched).toBe(0);
  expect((await rig.decoder.open({ tokens: PROMPT, scope: { salt: 1 } })).matched).toBe(PROMPT.length - 1);
});

test('a sequence goes on when pages have no room, and what fits is there for others', async () => {
  const rig = await createRig({ blocks: 4 });
  const long = someTokens(30);
  const sequence = await rig.decoder.open({ tokens: long });
  expectClose(await finishPrompt(sequence), await coldLogits(long));
  const other = await rig.decoder.open({ tokens: PROMPT });
  expectClose(await finishPrompt(other), await coldLogits(PROMPT));
  await sequence.close();
  const again = await rig.decoder.open({ tokens: long });
  expect(again.matched).toBe(4 * TOKENS_PER_BLOCK);
  expectClose(await finishPrompt(again), await coldLogits(long));
});

test('where the partial block of a match cannot be copied, a sequence begins where a block ends', async () => {
  const rig = await createRig({ blocks: 4 });
  await leaveBehind(rig, PROMPT);
  // Holds the three full blocks; the fourth slot is that of the tail, which must be copied to be continued.
  const holder = await rig.decoder.open({ tokens: [...PROMPT.slice(0, 14), 31] });
  const warm = await rig.decoder.open({ tokens: PROMPT });
  expect(warm.matched).toBe(12);
  expectClose(await finishPrompt(warm), await coldLogits(PROMPT));
  await holder.close();
});

test('sequences that are run by turns do not see each other', async () => {
  const rig = await createRig();
  const prompts = [PROMPT, parting(9), parting(2), someTokens(15, 9)];
  const sequences = await Promise.all(prompts.map((tokens) => rig.decoder.open({ tokens })));
  const logits: Float32Array[] = [];
  for (let i = 0; i < PROMPT.length; i++)
    for (const [row, sequence] of sequences.entries()) logits[row] = await sequence.forward([prompts[row][i]]);
  for (const [row, tokens] of prompts.entries()) expectClose(logits[row], await coldLogits(tokens));
});

test('calls at the same time are run one after the other, each sequence in its own order', async () => {
  const rig = await createRig();
  const prompts = [PROMPT, parting(9), parting(2)];
  const sequences = await Promise.all(prompts.map((tokens) => rig.decoder.open({ tokens })));
  const calls = sequences.map((sequence, row) => [
    sequence.forward(prompts[row].slice(0, 6)),
    sequence.forward(prompts[row].slice(6, 7)),
    sequence.forward(prompts[row].slice(7)),
  ]);
  for (const [row, [, , last]] of calls.entries()) expectClose(await last, await coldLogits(prompts[row]));
  expect(rig.session.mostRunning).toBe(1);
});

test('a long prompt is run in pieces where a most is set', async () => {
  const rig = await createRig({ options: { maxTokensPerRun: 4 } });
  const logits = await leaveBehind(rig, PROMPT);
  expect(rig.session.runs).toEqual([4, 4, 4, 3]);
  expectClose(logits, await coldLogits(PROMPT));
});

test('a merged model runs a rest token by token, unless it is said to do right with more', async () => {
  const rig = await createRig({ cacheBranch: true });
  await leaveBehind(rig, parting(10));
  rig.session.runs.length = 0;
  expectClose(await leaveBehind(rig, PROMPT), await coldLogits(PROMPT));
  expect(rig.session.runs).toEqual([1, 1, 1, 1, 1]);

  const bold = await createRig({ cacheBranch: true, options: { multiTokenPast: true } });
  await leaveBehind(bold, parting(10));
  bold.session.runs.length = 0;
  await leaveBehind(bold, PROMPT);
  expect(bold.session.runs).toEqual([5]);
});
