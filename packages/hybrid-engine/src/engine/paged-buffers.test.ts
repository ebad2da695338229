import { HostPageDevice, type HostPoolMemory, type KvCache, KvCacheManager, type PoolSpec } from '@bufferwise/cache-manager';
import { type BufferId, defineCacheConfig } from '@bufferwise/core-policy';
import type { ComputeStep, StepData } from '@bufferwise/gpu-kernels';
import { describe, expect, test } from 'vitest';
import { PagedBuffers } from './paged-buffers.ts';

/** Pages in this process, in memories that bear a buffer as those of a GPU do. */
class BufferedDevice extends HostPageDevice {
  override createPool(spec: PoolSpec): HostPoolMemory & { buffer: GPUBuffer } {
    return Object.assign(super.createPool(spec), { buffer: { label: spec.label } as GPUBuffer });
  }
}

/** A step that hands back what it is given to upload, copied as the real one does. */
const step = { upload: (data: Int32Array) => data.slice() as unknown as StepData } as unknown as ComputeStep;

const TOKENS_PER_BLOCK = 4;

function manager(): KvCacheManager {
  const keyAndValue = [
    { role: 'key', size: 64 },
    { role: 'value', size: 64 },
  ];
  const config = defineCacheConfig({
    tokensPerBlock: TOKENS_PER_BLOCK,
    tiers: [{ tier: 'device', quota: 8 << 20 }],
    layers: [
      { type: 'attention', layerId: 0, buffers: keyAndValue },
      { type: 'attention', layerId: 1, buffers: keyAndValue, slidingWindowSize: 8 },
      {
        type: 'ssm',
        layerId: 2,
        buffers: [
          { role: 'ssm_state', size: 256 },
          { role: 'conv_state', size: 32 },
        ],
      },
      { type: 'attention', layerId: 3, buffers: [...keyAndValue, { role: 'index', size: 16 }] },
      { type: 'ssm', layerId: 4, buffers: [{ role: 'ssm_state', size: 256 }] },
    ],
  });
  return new KvCacheManager({ config, device: new BufferedDevice(), debugChecks: true });
}

/** A request that has written `history` tokens and has room for `capacity`. */
async function request(of: KvCacheManager, history: number, capacity: number): Promise<KvCache> {
  const cache = of.createKvCache();
  await cache.resume();
  cache.resize(capacity, history);
  return cache;
}

/** The table of a buffer by the manager's own converter, row by row. */
function expectedTable(
  of: KvCacheManager,
  { layerId, role }: BufferId,
  requests: readonly KvCache[],
  maxBlocks: number,
): number[][] {
  const converter = of.layout.pageIndexConverter(layerId, role);
  const groupId = of.getBufferGroupId(layerId, role);
  const isState = of.lifecycles.get(groupId).kind === 'ssm';
  return requests.map((cache) => {
    const base = isState ? Int32Array.of(cache.ssmBlockBaseIndex(groupId)) : cache.basePageIndices(groupId);
    const row = [...converter.convert(base, { indexMode: 'per_layer', ...scratchOf(cache, groupId, isState) })];
    return isState ? row : [...row, ...new Array(maxBlocks - row.length).fill(-1)];
  });
}

function scratchOf(cache: KvCache, groupId: ReturnType<KvCacheManager['getBufferGroupId']>, isState: boolean) {
  const scratch = isState ? null : cache.scratch(groupId);
  return scratch === null ? {} : { scratch };
}

function rowsOf({ table, tableStride }: { table: StepData; tableStride: number }): number[][] {
  const entries = table as unknown as Int32Array;
  return Array.from({ length: entries.length / tableStride }, (_, row) => [
    ...entries.subarray(row * tableStride, (row + 1) * tableStride),
  ]);
}

describe('the tables of a step', () => {
  test('have a row for each request, as the converter of the buffer says, and -1 behind its last block', async () => {
    const of = manager();
    const ids = of.bufferGrouping.flat();
    const requests = [await request(of, 0, 3), await request(of, 21, 25), await request(of, 0, 16)];
    const pagesOf = new PagedBuffers(of, ids).bind(step, requests);
    for (const id of ids) expect(rowsOf(pagesOf(id)), `${id.layerId} ${id.role}`).toEqual(expectedTable(of, id, requests, 7));
  });

  test('are -1 where a page left the window, and go on beside full attention', async () => {
    const of = manager();
    const cache = await request(of, 21, 25);
    const pagesOf = new PagedBuffers(of, of.bufferGrouping.flat()).bind(step, [cache]);
    const [windowed] = rowsOf(pagesOf({ layerId: 1, role: 'key' }));
    const [full] = rowsOf(pagesOf({ layerId: 0, role: 'key' }));
    expect(windowed.map((index) => index >= 0)).toEqual([false, false, false, true, true, true, true]);
    expect(full.every((index) => index >= 0)).toBe(true);
  });

  test('of recurrent state have one entry a request, each its own', async () => {
    const of = manager();
    const requests = [await request(of, 0, 40), await request(of, 0, 1)];
    const bound = new PagedBuffers(of, of.bufferGrouping.flat()).bind(step, requests)({ layerId: 4, role: 'ssm_state' });
    expect(bound.tableStride).toBe(1);
    const indices = rowsOf(bound).flat();
    expect(new Set(indices).size).toBe(2);
    expect(Math.min(...indices)).toBeGreaterThanOrEqual(0);
  });

  test('name pages that no other request, layer or role of the pool has', async () => {
    const of = manager();
    const requests = [await request(of, 0, 30), await request(of, 0, 30)];
    const ids = of.bufferGrouping.flat();
    const pagesOf = new PagedBuffers(of, ids).bind(step, requests);
    const seen = new Set<string>();
    let count = 0;
    for (const id of ids) {
      const bound = pagesOf(id);
      for (const index of rowsOf(bound).flat()) {
        if (index < 0) continue;
        seen.add(`${bound.pool.label} ${index}`);
        count++;
      }
    }
    expect(seen.size).toBe(count);
  });

  test('follow the requests from step to step, also when a step is longer than any before', async () => {
    const of = manager();
    const ids = of.bufferGrouping.flat();
    const buffers = new PagedBuffers(of, ids);
    const requests = [await request(of, 0, 4), await request(of, 0, 9)];
    for (const capacity of [9, 40, 900, 1600]) {
      for (const cache of requests) cache.resize(capacity, cache.capacity);
      const pagesOf = buffers.bind(step, requests);
      for (const id of ids)
        expect(rowsOf(pagesOf(id))).toEqual(expectedTable(of, id, requests, Math.ceil(capacity / TOKENS_PER_BLOCK)));
    }
    requests[0].close();
    const left = [requests[1], await request(of, 0, 2)];
    const pagesOf = buffers.bind(step, left);
    for (const id of ids) expect(rowsOf(pagesOf(id))).toEqual(expectedTable(of, id, left, 400));
  });
});

test('a buffer is read in the memory of its pool, its pages as far apart as the layout has them', async () => {
  const of = manager();
  const pagesOf = new PagedBuffers(of, of.bufferGrouping.flat()).bind(step, [await request(of, 0, 5)]);
  for (const { layerId, role } of of.bufferGrouping.flat()) {
    const { pool, pageStrideWords } = pagesOf({ layerId, role });
    expect(pool).toBe((of.poolMemory(layerId, role) as HostPoolMemory & { buffer: GPUBuffer }).buffer);
    expect(pageStrideWords * 4).toBe(of.layout.pageStride(layerId, role));
  }
});
