import { PageIndexConverter } from '@bufferwise/scratch-allocator';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { pageIndexReference } from './page-index.reference.ts';
import { planPageIndex } from './page-index.ts';
import { somePageIndexCase } from './page-index-cases.ts';

test('the reference says what the converter of the host says', () => {
  fc.assert(
    fc.property(somePageIndexCase, ({ numRequests, sources, sections }) => {
      for (const section of sections) {
        const source = sources[section.source];
        const found = pageIndexReference(numRequests, source, section);
        const converter = new PageIndexConverter(section);
        const rowLength = source.blocks * section.expansion;
        for (let request = 0; request < numRequests; request++) {
          const row = source.slotIds.subarray(request * source.blocks, (request + 1) * source.blocks);
          const expected = converter.convert(row, { indexMode: 'per_layer', scratch: source.scratch?.[request] ?? null });
          expect([...found.subarray(request * rowLength, (request + 1) * rowLength)]).toEqual([...expected]);
        }
      }
    }),
    { numRuns: 200 },
  );
});

test('tables follow each other at offsets that can be bound', () => {
  const section = { source: 0, scale: 2, expansion: 3, layerOffset: 1, scratchPagesPerBlock: 1, rankInLayer: 0 };
  expect(planPageIndex(2, [{ blocks: 11 }, { blocks: 1 }], [section, { ...section, source: 1, expansion: 1 }])).toEqual({
    tables: [
      { rowLength: 33, offset: 0, size: 264 },
      { rowLength: 1, offset: 512, size: 8 },
    ],
    bytes: 768,
  });
  expect(planPageIndex(0, [{ blocks: 4 }], [section])).toEqual({ tables: [{ rowLength: 12, offset: 0, size: 0 }], bytes: 0 });
});
