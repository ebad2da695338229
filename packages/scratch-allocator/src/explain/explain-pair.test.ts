import { type BufferConfig, defineCacheConfig, type LayerConfig, UnknownBufferError } from '@bufferwise/core-policy';
import { describe, expect, it } from 'vitest';
import { StorageLayout } from '../layout/storage-layout.ts';
import { explainPair, formatPair } from './explain-pair.ts';

const TOKENS_PER_BLOCK = 16;
const key: BufferConfig = { role: 'key', size: 4096 };

/** The first buffers of two layers; attention with a key of 4 KiB unless they say otherwise. */
function pairOf(a: Partial<LayerConfig>, b: Partial<LayerConfig>) {
  const layers = [a, b].map((layer, layerId) => ({ type: 'attention', layerId, buffers: [key], ...layer }) as LayerConfig);
  const config = defineCacheConfig({ tokensPerBlock: TOKENS_PER_BLOCK, layers, tiers: [{ tier: 'device', quota: 2 ** 30 }] });
  const [first, second] = layers.map(({ layerId, buffers }) => ({ layerId, role: buffers[0].role }));
  return explainPair(config, first, second);
}

describe('explainPair', () => {
  it('two equal layers share a slot, and a buffer shares one with itself', () => {
    expect(pairOf({}, {})).toEqual({
      a: { layerId: 0, role: 'key' },
      b: { layerId: 1, role: 'key' },
      sameGroup: true,
      samePoolGroup: true,
      samePool: true,
      sameCoalescedBuffer: true,
      differences: [],
    });
    const config = defineCacheConfig({
      tokensPerBlock: 16,
      layers: [{ type: 'attention', layerId: 0, buffers: [key] }],
      tiers: [{ tier: 'device', quota: 2 ** 30 }],
    });
    const self = { layerId: 0, role: 'key' };
    expect(explainPair(config, self, self)).toMatchObject({ sameCoalescedBuffer: true, differences: [] });
  });

  it.each<[string, Partial<LayerConfig>, Partial<LayerConfig>, unknown[]]>([
    ['policy', {}, { reusePolicy: 'private' }, [{ what: 'policy', a: 'required', b: 'private' }]],
    ['kind', {}, { type: 'ssm' }, [{ what: 'kind', a: 'attention', b: 'ssm' }]],
    ['window', {}, { slidingWindowSize: 32 }, [{ what: 'window', a: null, b: 32 }]],
    [
      'sinks, in blocks',
      { slidingWindowSize: 32, numSinkTokens: 16 },
      { slidingWindowSize: 32, numSinkTokens: 17 },
      [{ what: 'sink-blocks', a: 1, b: 2 }],
    ],
    ['sparsity group', { sparsityGroup: 's' }, {}, [{ what: 'sparsity-group', a: 's', b: null }]],
  ])('a different %s parts groups', (_, a, b, differences) => {
    expect(pairOf(a, b)).toMatchObject({ sameGroup: false, sameCoalescedBuffer: false, differences });
  });

  it('sinks that make up equal blocks part nothing', () => {
    const window = (numSinkTokens: number): Partial<LayerConfig> => ({ slidingWindowSize: 32, numSinkTokens });
    expect(pairOf(window(1), window(16)).differences).toEqual([]);
  });

  it('expanded sizes decide, not page sizes', () => {
    const halfPages: BufferConfig = { role: 'key', size: 2048, tokensPerBlockOverride: 8 };
    expect(pairOf({}, { buffers: [halfPages] }).differences).toEqual([]);
    const pair = pairOf({}, { buffers: [{ ...halfPages, size: 4096 }] });
    expect(pair).toMatchObject({ sameGroup: true, samePoolGroup: true, samePool: false, sameCoalescedBuffer: false });
    expect(pair.differences).toEqual([{ what: 'expanded-size', a: 4096, b: 8192 }]);
  });

  it('a coalescing group parts buffers of one group, also from those that name none', () => {
    const pair = pairOf({}, { buffers: [{ ...key, coalescingGroup: 'fp8' }] });
    expect(pair).toMatchObject({ sameGroup: true, samePool: false });
    expect(pair.differences).toEqual([{ what: 'coalescing-group', a: null, b: 'fp8' }]);
  });

  it('groups of equal slots lie in one pool, of unequal slots they do not', () => {
    expect(pairOf({ slidingWindowSize: 32 }, {})).toMatchObject({ sameGroup: false, samePoolGroup: true, samePool: true });
    const value: BufferConfig = { role: 'value', size: 4096 };
    const pair = pairOf({ slidingWindowSize: 32 }, { buffers: [key, value] });
    expect(pair).toMatchObject({ sameGroup: false, samePoolGroup: false, samePool: false });
    expect(pair.differences).toEqual([
      { what: 'window', a: 32, b: null },
      { what: 'slot-sizes', a: [4096], b: [8192] },
    ]);
  });

  it('tells every difference at once', () => {
    const buffers: BufferConfig[] = [{ role: 'replay_x', size: 512, coalescingGroup: 'ring' }];
    const pair = pairOf({ slidingWindowSize: 8 }, { type: 'ssm', reusePolicy: 'private', buffers });
    expect(pair.differences.map(({ what }) => what)).toEqual([
      'policy',
      'kind',
      'slot-sizes',
      'expanded-size',
      'coalescing-group',
    ]);
  });

  it('refuses buffers that are not there, or of size 0', () => {
    const config = defineCacheConfig({
      tokensPerBlock: 16,
      layers: [{ type: 'attention', layerId: 0, buffers: [key, { role: 'value', size: 0 }] }],
      tiers: [{ tier: 'device', quota: 2 ** 30 }],
    });
    const known = { layerId: 0, role: 'key' };
    for (const unknown of [
      { layerId: 0, role: 'value' },
      { layerId: 7, role: 'key' },
    ]) {
      expect(() => explainPair(config, known, unknown)).toThrow(UnknownBufferError);
      expect(() => explainPair(config, unknown, known)).toThrow(UnknownBufferError);
    }
  });

  it('takes a layout that the caller has already', () => {
    const layers: LayerConfig[] = [{ type: 'attention', layerId: 0, buffers: [key] }];
    const config = defineCacheConfig({ tokensPerBlock: 16, layers, tiers: [{ tier: 'device', quota: 2 ** 30 }] });
    const id = { layerId: 0, role: 'key' };
    expect(explainPair(config, id, id, StorageLayout.fromConfig(config))).toEqual(explainPair(config, id, id));
  });
});

describe('formatPair', () => {
  it('says it in one sentence', () => {
    expect(formatPair(pairOf({}, {}))).toBe('Buffer "key" of layer 0 and buffer "key" of layer 1 share a slot.');
    expect(formatPair(pairOf({ slidingWindowSize: 32 }, {}))).toBe(
      'Buffer "key" of layer 0 and buffer "key" of layer 1 are in different groups of one pool: window 32 tokens against none.',
    );
    expect(formatPair(pairOf({}, { buffers: [{ role: 'key', size: 4098, coalescingGroup: 'a' }] }))).toBe(
      'Buffer "key" of layer 0 and buffer "key" of layer 1 are in one group but different pools: ' +
        'size in a slot 4 KiB against 4,098 B; coalescing group none against "a".',
    );
    const window: Partial<LayerConfig> = { slidingWindowSize: 1, numSinkTokens: 1 };
    const other: Partial<LayerConfig> = { slidingWindowSize: 32, sparsityGroup: 's', reusePolicy: 'optional' };
    expect(formatPair(pairOf(window, other))).toBe(
      'Buffer "key" of layer 0 and buffer "key" of layer 1 are in different groups and pools: policy required against optional; ' +
        'window 1 token against 32 tokens; sinks 1 block against 0 blocks; sparsity group none against "s".',
    );
    const state: Partial<LayerConfig> = { type: 'ssm', buffers: [key, { role: 'conv_state', size: 512 }] };
    expect(formatPair(pairOf({}, state))).toBe(
      'Buffer "key" of layer 0 and buffer "key" of layer 1 are in different groups and pools: kind attention against ssm; ' +
        'slots 4 KiB against 4 KiB + 512 B.',
    );
  });
});
