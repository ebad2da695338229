import { HostPageDevice, KvCacheManager, type PageDevice, type PoolSpec } from '@bufferwise/cache-manager';
import { AmbiguousLayerError, type AttentionLayerConfig, defineCacheConfig, type LayerConfig } from '@bufferwise/core-policy';
import * as ort from 'onnxruntime-node';
import { expect, test } from 'vitest';
import { OnnxDecoder, onnxCacheLayers } from '../src/index.ts';
import { someTokens, tinySession } from './support/rig.ts';

const TOKENS_PER_BLOCK = 4;

async function decoderOver(
  change: (layers: AttentionLayerConfig[]) => readonly LayerConfig[],
  device: PageDevice = new HostPageDevice(),
) {
  const session = await tinySession();
  const layers = change(onnxCacheLayers(session, TOKENS_PER_BLOCK));
  const tiers = [{ tier: 'device', quota: 2 ** 24 }] as const;
  const manager = new KvCacheManager({ config: defineCacheConfig({ tokensPerBlock: TOKENS_PER_BLOCK, layers, tiers }), device });
  const before = manager.inspect();
  try {
    return await OnnxDecoder.create({ session, ort, manager });
  } catch (error) {
    expect(manager.inspect()).toEqual(before);
    throw error;
  }
}

const refused = (why: RegExp) => expect.objectContaining({ code: 'layout-refused', message: expect.stringMatching(why) });

test('a manager made of the layers of the model will do, and stays open when the decoder closes', async () => {
  const decoder = await decoderOver((layers) => layers);
  const { manager } = decoder;
  const sequence = await decoder.open({ tokens: someTokens(9) });
  await sequence.forward(sequence.rest);
  await decoder.close();
  expect(manager.probeReuse(someTokens(9))).toBe(9);
  await manager.close();
});

test('a layer whose key and value have different lifecycles is refused before memory is touched', async () => {
  const split = decoderOver((layers) =>
    layers.map((layer) => ({
      ...layer,
      buffers: layer.buffers.map((buffer) =>
        buffer.role === 'value' ? { ...buffer, reusePolicy: 'optional' as const } : buffer,
      ),
    })),
  );
  await expect(split).rejects.toBeInstanceOf(AmbiguousLayerError);
  await expect(split).rejects.toHaveProperty('layerId', 0);
});

test('layers that need not be reused, or not as a whole, are refused: a model runs all of its layers or none', async () => {
  const optional = decoderOver((layers) => layers.map((layer) => ({ ...layer, reusePolicy: 'optional' as const })));
  await expect(optional).rejects.toEqual(refused(/layer 0 is optional/));
  const windowed = decoderOver((layers) => layers.map((layer, i) => (i === 1 ? { ...layer, slidingWindowSize: 8 } : layer)));
  await expect(windowed).rejects.toEqual(refused(/layer 1 keeps only some/));
});

test('a manager of another model is refused', async () => {
  await expect(decoderOver(([first]) => [first])).rejects.toEqual(refused(/layer 1/));
  const more = decoderOver((layers) => [...layers, { ...layers[0], layerId: 7 }]);
  await expect(more).rejects.toEqual(refused(/layer 7 is none of the model's/));
  const wider = decoderOver((layers) =>
    layers.map((layer) => ({ ...layer, buffers: layer.buffers.map((buffer) => ({ ...buffer, size: 2 * buffer.size })) })),
  );
  await expect(wider).rejects.toEqual(refused(/bytes/));
});

test('pages that are not in memory of this process are refused', async () => {
  class FarDevice extends HostPageDevice {
    override createPool(spec: PoolSpec) {
      const { ready } = super.createPool(spec);
      return { spec, ready, destroy: () => {} } as unknown as ReturnType<HostPageDevice['createPool']>;
    }
  }
  await expect(decoderOver((layers) => layers, new FarDevice())).rejects.toEqual(refused(/HostPageDevice/));
});
