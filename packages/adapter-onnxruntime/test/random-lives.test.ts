import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { OnnxSequence } from '../src/index.ts';
import { coldLogits, createRig, expectClose, someTokens } from './support/rig.ts';

/** Few texts with long beginnings in common: what one leaves behind, the next ones find. */
const STORIES = [0, 5, 9, 14].map((parting) => [...someTokens(parting), ...someTokens(24 - parting, parting + 2)]);

/** What may be done with one of the sequences that are open. */
type Action =
  | { kind: 'open'; story: number; length: number; salt: number }
  | { kind: 'run'; which: number; count: number }
  | { kind: 'fail'; which: number }
  | { kind: 'close'; which: number };

const which = fc.nat({ max: 9 });
const action: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('open' as const),
      story: fc.nat({ max: 3 }),
      length: fc.integer({ min: 1, max: 24 }),
      salt: fc.nat({ max: 1 }),
    }),
  },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('run' as const), which, count: fc.integer({ min: 1, max: 24 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('fail' as const), which }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('close' as const), which }) },
);

interface Life {
  sequence: OnnxSequence;
  story: number;
}

const known = new Map<string, Promise<Float32Array>>();
function expected(story: number, length: number): Promise<Float32Array> {
  const key = `${story} ${length}`;
  const logits = known.get(key) ?? coldLogits(STORIES[story].slice(0, length));
  known.set(key, logits);
  return logits;
}

test('whatever was opened, run, failed, closed and evicted before, logits are those of the same tokens from nothing', async () => {
  let reused = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(action, { minLength: 10, maxLength: 60 }),
      fc.integer({ min: 5, max: 14 }),
      async (actions, blocks) => {
        const rig = await createRig({ blocks, checked: false });
        const open: Life[] = [];
        for (const each of actions) {
          if (each.kind === 'open') {
            const tokens = STORIES[each.story].slice(0, each.length);
            const sequence = await rig.decoder.open({ tokens, scope: { salt: each.salt } });
            expect(sequence.rest).toEqual(Uint32Array.from(tokens.slice(sequence.matched)));
            reused += sequence.matched;
            open.push({ sequence, story: each.story });
            continue;
          }
          if (open.length === 0) continue;
          const [life] = open.slice(each.which % open.length);
          const { sequence, story } = life;
          if (each.kind === 'close') {
            await sequence.close();
            open.splice(open.indexOf(life), 1);
            continue;
          }
          const next = STORIES[story].slice(sequence.length, sequence.length + (each.kind === 'run' ? each.count : 1));
          if (next.length === 0) continue;
          if (each.kind === 'fail') {
            rig.session.beforeRun = () => Promise.reject(new Error('no memory'));
            await expect(sequence.forward(next)).rejects.toHaveProperty('code', 'onnx-run');
            rig.session.beforeRun = () => {};
            open.splice(open.indexOf(life), 1);
            continue;
          }
          expectClose(await sequence.forward(next), await expected(story, sequence.length));
        }
        await rig.end();
      },
    ),
    { numRuns: 60 },
  );
  expect(reused).toBeGreaterThan(0);
});
