import fc from 'fast-check';
import type { PageIndexScratch, PageIndexSection, PageIndexSource } from './page-index.ts';

export interface PageIndexCase {
  numRequests: number;
  sources: PageIndexSource[];
  sections: PageIndexSection[];
}

const MAX_SLOT = 500;

/** Requests with holes, and scratch in some of them; buffers of every place in a slot, layers that cross slots among them. */
export const somePageIndexCase: fc.Arbitrary<PageIndexCase> = fc
  .record({
    numRequests: fc.integer({ min: 1, max: 5 }),
    sections: fc.array(someSection(), { minLength: 1, maxLength: 12 }),
    blocks: fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 3, maxLength: 3 }),
  })
  .chain(({ numRequests, sections, blocks }) =>
    fc.tuple(...blocks.map((count, source) => someSource(numRequests, count, sections, source))).map((sources) => ({
      numRequests,
      sources,
      sections,
    })),
  );

/** One of three lifecycles; in the last one nobody has scratch, as with recurrent state. */
function someSection(): fc.Arbitrary<PageIndexSection> {
  return fc.integer({ min: 1, max: 7 }).chain((scale) =>
    fc.integer({ min: 1, max: scale }).chain((scratchPagesPerBlock) =>
      fc.record({
        source: fc.nat({ max: 2 }),
        scale: fc.constant(scale),
        expansion: fc.integer({ min: 1, max: 4 }),
        layerOffset: fc.nat({ max: scale - 1 }),
        scratchPagesPerBlock: fc.constant(scratchPagesPerBlock),
        rankInLayer: fc.nat({ max: scratchPagesPerBlock - 1 }),
      }),
    ),
  );
}

function someSource(
  numRequests: number,
  blocks: number,
  sections: readonly PageIndexSection[],
  source: number,
): fc.Arbitrary<PageIndexSource> {
  // Every section of the source has to find room in the scratch slots.
  const slotsPerBlock = Math.max(
    1,
    ...sections.filter((one) => one.source === source).map(({ scale, scratchPagesPerBlock }) => scratchPagesPerBlock / scale),
  );
  const scratch: fc.Arbitrary<PageIndexScratch | null> = fc
    .tuple(fc.nat({ max: blocks }), fc.nat({ max: blocks + 2 }))
    .chain(([one, other]) => {
      const range = { begin: Math.min(one, other), end: Math.max(one, other) };
      const numSlots = Math.ceil((range.end - range.begin) * slotsPerBlock);
      return fc.array(fc.nat({ max: MAX_SLOT }), { minLength: numSlots, maxLength: numSlots }).map((slots) => ({
        range,
        slotIds: Int32Array.from(slots),
      }));
    });
  return fc.record(
    {
      blocks: fc.constant(blocks),
      slotIds: fc
        .array(fc.oneof({ weight: 5, arbitrary: fc.nat({ max: MAX_SLOT }) }, { weight: 1, arbitrary: fc.constant(-1) }), {
          minLength: numRequests * blocks,
          maxLength: numRequests * blocks,
        })
        .map((slots) => Int32Array.from(slots)),
      ...(source === 2
        ? {}
        : { scratch: fc.array(fc.option(scratch, { freq: 2 }), { minLength: numRequests, maxLength: numRequests }) }),
    },
    { requiredKeys: ['blocks', 'slotIds'] },
  );
}
