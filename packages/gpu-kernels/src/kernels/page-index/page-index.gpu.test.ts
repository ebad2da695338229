import { readBytes, requestTestDevice, storageBuffer } from '@bufferwise-internal/webgpu-node/testing';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ComputeContext } from '../../kernel/compute-context.ts';
import { pageIndexReference } from './page-index.reference.ts';
import { type PageIndexSection, pageIndexKernel, planPageIndex, recordPageIndex } from './page-index.ts';
import { somePageIndexCase } from './page-index-cases.ts';

const device = await requestTestDevice();
const context = ComputeContext.of(device);

/** Never a page index: shows which entries nobody wrote. */
const UNTOUCHED = -77;

const keys: PageIndexSection = { source: 0, scale: 2, expansion: 1, layerOffset: 0, scratchPagesPerBlock: 2, rankInLayer: 0 };

test('page tables made on the device are those of the reference, and nothing else is written', async () => {
  await fc.assert(
    fc.asyncProperty(somePageIndexCase, async ({ numRequests, sources, sections }) => {
      const { bytes } = planPageIndex(numRequests, sources, sections);
      const expected = new Int32Array(bytes / 4 + 16).fill(UNTOUCHED);
      const target = storageBuffer(device, expected);
      const step = context.step('tables');
      const { tables } = recordPageIndex(step, { numRequests, sources, sections, target });
      expect(step.submit().numDispatches).toBe(1);
      sections.forEach((section, i) => {
        expected.set(pageIndexReference(numRequests, sources[section.source], section), tables[i].offset / 4);
      });
      const found = new Int32Array(await readBytes(device, target));
      expect(found.findIndex((entry, i) => entry !== expected[i])).toBe(-1);
      target.destroy();
    }),
    { numRuns: 60 },
  );
});

test('a layer whose blocks cross slots finds every sub-page of its scratch once', async () => {
  // Three buffers a layer in slots of four: block 1 begins in slot 9 and ends in slot 5.
  const sections = [0, 1, 2].map((rankInLayer) => ({
    ...keys,
    scale: 4,
    scratchPagesPerBlock: 3,
    layerOffset: rankInLayer,
    rankInLayer,
  }));
  const scratch = [{ range: { begin: 0, end: 2 }, slotIds: Int32Array.of(9, 5) }];
  const sources = [{ blocks: 3, slotIds: Int32Array.of(-1, -1, 7), scratch }];
  const target = storageBuffer(device, planPageIndex(1, sources, sections).bytes);
  const step = context.step('crossing');
  const { tables } = recordPageIndex(step, { numRequests: 1, sources, sections, target });
  step.submit();
  const found = new Int32Array(await readBytes(device, target));
  expect(tables.map(({ offset }) => [...found.subarray(offset / 4, offset / 4 + 3)])).toEqual([
    [36, 39, 28],
    [37, 20, 29],
    [38, 21, 30],
  ]);
});

test('no request makes no dispatch', () => {
  const step = context.step('none');
  const sources = [{ blocks: 2, slotIds: new Int32Array(0) }];
  recordPageIndex(step, { numRequests: 0, sources, sections: [keys], target: storageBuffer(device, 4) });
  expect(step.submit().numDispatches).toBe(0);
});

test('what would make the device read or write beyond its tables is refused', () => {
  const step = context.step('refused');
  const target = storageBuffer(device, 256);
  const slotIds = Int32Array.of(1, 2, 3, 4);
  const record = (options: Partial<Parameters<typeof recordPageIndex>[1]>) => () =>
    recordPageIndex(step, { numRequests: 2, sources: [{ blocks: 2, slotIds }], sections: [keys], target, ...options });
  const withScratch = (numSlots: number, numRows = 2) => ({
    sources: [
      {
        blocks: 2,
        slotIds,
        scratch: Array.from({ length: numRows }, () => ({ range: { begin: 0, end: 2 }, slotIds: new Int32Array(numSlots) })),
      },
    ],
  });
  expect(record({})).not.toThrow();
  expect(record(withScratch(2))).not.toThrow();
  expect(record({ numRequests: 3 })).toThrow('source 0 has 4 slot ids, 3 requests of 2 blocks have 6');
  expect(record(withScratch(1))).toThrow('4 scratch sub-pages do not fit into 1 slots of 2 sub-pages');
  expect(record(withScratch(2, 1))).toThrow('source 0 tells the scratch of 1 requests, there are 2');
  expect(record({ target: storageBuffer(device, 12) })).toThrow('tables of 256 bytes do not fit into a buffer of 12');
});

test('it compiles ahead of its use', async () => {
  await expect(context.warmUp(pageIndexKernel)).resolves.toBeUndefined();
});
