import { PageIndexConverter } from '@bufferwise/scratch-allocator';
import { requestTestDevice } from '@bufferwise-internal/webgpu-node/testing';
import { expect, test } from 'vitest';
import { ComputeContext } from '../../kernel/compute-context.ts';
import type { ReferencePages, ReferencePlaces, ReferenceScales } from '../kv-pages/kv-pages.reference.ts';
import type { KvPages } from '../kv-pages/kv-pages.ts';
import { type AttentionCase, layOut, relativeError, run, upload } from './attention-rig.ts';
import type { AttentionShape } from './attention-shape.ts';
import { pagedAttentionReference } from './paged-attention.reference.ts';
import { PagedAttention } from './paged-attention.ts';

const device = await requestTestDevice();
const context = ComputeContext.of(device);

const TOKENS_PER_PAGE = 4;
const NUM_SLOTS = 8;

/** Base indices of one request with 10 blocks, and the slots that its scratch blocks share. */
const BASE = Int32Array.of(0, 6, -1, -1, -1, -1, -1, -1, 2, 3);
const SCRATCH = { range: { begin: 2, end: 8 }, slotIds: Int32Array.of(5, 1, 4) };

/** The pages of two buffers of one layer, keys first, moved into coalesced slots of `scale` sub-pages. */
function intoSlots<Pages extends ReferencePlaces & { pool: ArrayLike<number>; numbersPerWord?: number }>(
  buffers: readonly Pages[],
  scale: number,
): Pages[] {
  const [{ pageStrideWords, numbersPerWord = 1 }] = buffers;
  const pageNumbers = pageStrideWords * numbersPerWord;
  const pool = new Float32Array(NUM_SLOTS * scale * pageNumbers).fill(Number.NaN);
  const moved = buffers.map((from, rank): Pages => {
    const scheme = { scale, expansion: 1, scratchPagesPerBlock: buffers.length, layerOffset: rank, rankInLayer: rank };
    const table = new PageIndexConverter(scheme).convert(BASE, { indexMode: 'per_layer', scratch: SCRATCH });
    table.forEach((page, block) => {
      const at = (from.baseWords ?? 0) * numbersPerWord + from.table[block] * pageNumbers;
      for (let i = 0; i < pageNumbers; i++) pool[page * pageNumbers + i] = from.pool[at + i] ?? Number.NaN;
    });
    return { ...from, pool, table, tableStride: table.length, baseWords: 0 };
  });
  const slotsOf = ({ table }: Pages) => Array.from(table, (page) => Math.floor(page / scale));
  expect(slotsOf(moved[0])).not.toEqual(slotsOf(moved[1]));
  return moved;
}

const SHAPE: AttentionShape = { numQueryHeads: 4, numKvHeads: 2, headDim: 32 };

test.each(['f32', 'f16', 'int8'] as const)(
  'a block of a layer may cross from one coalesced slot into the next, in %s',
  async (storage) => {
    const shape = { ...SHAPE, storage };
    for (const numQueries of [40, 1]) {
      const attentionCase: AttentionCase = {
        shape,
        requests: [{ contextLength: 40, numQueries, seed: 6 }],
        keys: { tokensPerPage: TOKENS_PER_PAGE },
        values: { tokensPerPage: TOKENS_PER_PAGE },
        slidingWindowSize: numQueries === 1 ? 33 : 9,
      };
      const operands = layOut(attentionCase);
      const expected = pagedAttentionReference(shape, operands);
      // Five sub-pages a slot for keys and values, seven for their scales: of other layers are the rest.
      const [keys, values] = intoSlots([operands.keys, operands.values as ReferencePages], 5);
      if (keys.scales && values.scales) {
        const moved = intoSlots<ReferenceScales>([keys.scales, values.scales], 7);
        [keys.scales, values.scales] = moved;
      }
      const uploaded = upload(device, shape, { ...operands, keys, values });
      const shared = { ...uploaded, values: { ...(uploaded.values as KvPages), pool: uploaded.keys.pool } };
      for (const tiling of storage === 'f32' ? (['software', 'gpu'] as const) : (['software'] as const)) {
        const attention = new PagedAttention(context, shape, { tiling });
        const { output } = await run(context, shared, (step) => attention[numQueries === 1 ? 'decode' : 'prefill'](step, shared));
        expect(relativeError(output, expected)).toBeLessThan(1e-4);
        attention.destroy();
      }
    }
  },
);
