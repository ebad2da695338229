import { HostPageDevice, KvCacheManager } from '@bufferwise/cache-manager';
import { defineCacheConfig } from '@bufferwise/core-policy';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { cacheLayers } from '../model/cache-layers.ts';
import { type DecoderModel, KV_ELEMENT_BYTES, type KvElementType, type KvTensor } from '../model/decoder-model.ts';
import { KvPages } from './kv-pages.ts';

/** Layers that differ in heads, and whose values are narrower than their keys. */
function modelOf(type: KvElementType, heads: readonly number[]): DecoderModel {
  const kvTensors = heads.flatMap((numKvHeads, layerId) =>
    (['key', 'value'] as const).map(
      (role): KvTensor => ({
        layerId,
        role,
        past: `past ${layerId} ${role}`,
        present: `present ${layerId} ${role}`,
        type,
        numKvHeads,
        headDim: role === 'key' ? 4 : 2,
      }),
    ),
  );
  return { kvTensors, takesMask: true, takesPositions: true, takesCacheBranch: false, numLogitsRank: null, vocabSize: null };
}

test('rows come back as they were written, wherever writes were cut and whatever block sizes and heads', async () => {
  const cuts = fc.uniqueArray(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 6 });
  const heads = fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 1, maxLength: 3 });
  const types = fc.constantFrom<KvElementType>('float32', 'float16');
  await fc.assert(
    fc.asyncProperty(
      cuts,
      heads,
      types,
      fc.integer({ min: 1, max: 9 }).map((n) => 2 * n),
      async (ends, numHeads, type, tokensPerBlock) => {
        ends.sort((a, b) => a - b);
        const length = ends.at(-1)!;
        const model = modelOf(type, numHeads);
        const layers = cacheLayers(model, tokensPerBlock);
        const config = defineCacheConfig({ tokensPerBlock, layers, tiers: [{ tier: 'device', quota: 2 ** 23 }] });
        const manager = new KvCacheManager({ config, device: new HostPageDevice() });
        const pages = new KvPages(manager, model);
        const rows = new Map(
          model.kvTensors.map(({ past, numKvHeads, headDim }, seed) => [
            past,
            Uint8Array.from(
              { length: numKvHeads * length * headDim * KV_ELEMENT_BYTES[type] },
              (_, i) => (i * 31 + seed * 7) % 251,
            ),
          ]),
        );
        const kvCache = manager.createKvCache();
        await kvCache.resume();
        kvCache.resize(length);
        let begin = 0;
        for (const end of ends) {
          pages.write(kvCache, begin, end, rows, length);
          begin = end;
        }
        expect(pages.read(kvCache, length)).toEqual(rows);
        await manager.close({ force: true });
      },
    ),
    { numRuns: 60 },
  );
});
