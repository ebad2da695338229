import { BrokenPromiseError } from '../assertions.ts';
import type { Suite } from '../suite.ts';
import { alternating, batch, untouched } from './batches.ts';
import type { ConsumerHarness } from './harness.ts';
import { claims, closes, plans, refusesForeign, refusesUnsupported } from './layouts.ts';
import { coldInPieces, evicted, partialBlocks, replayed, snapshots, suspended, warmIsCold } from './reuse.ts';
import { beams, crossingScratch, rewinds, scratch } from './steps.ts';

/** What every consumer does. */
export const consumerSuite: Suite<ConsumerHarness<unknown>> = {
  kind: 'consumer',
  promises: [
    claims,
    refusesForeign,
    refusesUnsupported,
    plans,
    coldInPieces,
    warmIsCold,
    evicted,
    suspended,
    batch,
    alternating,
    untouched,
    partialBlocks,
    snapshots,
    replayed,
    scratch,
    crossingScratch,
    rewinds,
    beams,
    closes,
  ],
  async supports(harness) {
    const [mix] = harness.mixes;
    if (mix === undefined) throw new BrokenPromiseError('the harness has no mixes: give at least one');
    const consumer = await harness.create(mix);
    await (harness.destroy ? harness.destroy(consumer) : consumer.close());
    return consumer.supports;
  },
};
