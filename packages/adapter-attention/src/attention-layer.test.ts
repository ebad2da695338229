import { defineCacheConfig } from '@bufferwise/core-policy';
import { describe, expect, test } from 'vitest';
import { type AttentionLayer, attentionLayerConfig } from './attention-layer.ts';

const layer: AttentionLayer = { layerId: 7, numQueryHeads: 8, numKvHeads: 2, headDim: 64 };
const buffersOf = (more: Partial<AttentionLayer>) => attentionLayerConfig({ ...layer, ...more }, 16).buffers;
const sizesOf = (more: Partial<AttentionLayer>) => Object.fromEntries(buffersOf(more).map(({ role, size }) => [role, size]));
const policiesOf = (more: Partial<AttentionLayer>) =>
  Object.fromEntries(buffersOf(more).map(({ role, reusePolicy }) => [role, reusePolicy]));

describe('the buffers of a layer', () => {
  test('are keys and values, as wide as they are stored', () => {
    expect(sizesOf({})).toEqual({ key: 16 * 2 * 64 * 4, value: 16 * 2 * 64 * 4 });
    expect(sizesOf({ storage: 'f16' })).toEqual({ key: 16 * 2 * 64 * 2, value: 16 * 2 * 64 * 2 });
    expect(sizesOf({ valueDim: 32 })).toEqual({ key: 16 * 2 * 64 * 4, value: 16 * 2 * 32 * 4 });
  });

  test('have scales for each page and head in int8', () => {
    expect(sizesOf({ storage: 'int8' })).toEqual({ key: 2048, value: 2048, key_scale: 8, value_scale: 8 });
  });

  test('have smaller pages where they are told so, and a scale for each of them', () => {
    const overrides = { key: 4, value: 8, value_scale: 8 };
    expect(sizesOf({ storage: 'int8', tokensPerBlockOverrides: overrides })).toEqual({
      key: 4 * 128,
      value: 8 * 128,
      // A page for the whole block, of four pages of keys.
      key_scale: 4 * 8,
      value_scale: 8,
    });
  });

  test('make a config as they are', () => {
    const config = attentionLayerConfig(
      {
        ...layer,
        storage: 'int8',
        slidingWindowSize: 40,
        numSinkTokens: 3,
        reusePolicy: 'optional',
        tokensPerBlockOverrides: { key: 4 },
        coalescingGroups: { value: 'values' },
      },
      16,
    );
    const tiers = [{ tier: 'device', quota: 1 << 24 }] as const;
    const { layers } = defineCacheConfig({ tokensPerBlock: 16, layers: [config], tiers });
    expect(layers[0]).toMatchObject({ type: 'attention', layerId: 7, slidingWindowSize: 40, numSinkTokens: 3 });
    expect(layers[0].buffers).toMatchObject([
      { role: 'key', tokensPerBlockOverride: 4, reusePolicy: 'optional' },
      { role: 'value', coalescingGroup: 'values', reusePolicy: 'optional' },
      { role: 'key_scale', reusePolicy: 'optional' },
      { role: 'value_scale', reusePolicy: 'optional' },
    ]);
  });
});

describe('scales', () => {
  test('have the policy of their numbers', () => {
    expect(policiesOf({ storage: 'int8', policies: { key: 'optional', value: 'private' } })).toEqual({
      key: 'optional',
      key_scale: 'optional',
      value: 'private',
      value_scale: 'private',
    });
    expect(policiesOf({ storage: 'int8', reusePolicy: 'optional', policies: { value: 'private' } })).toMatchObject({
      key_scale: undefined,
      value_scale: 'private',
    });
  });

  test('may be given it, and no other', () => {
    const same = { storage: 'int8', policies: { value: 'private', value_scale: 'private' } } as const;
    expect(policiesOf(same)).toMatchObject({ value_scale: 'private' });
    for (const policies of [{ value_scale: 'private' }, { key: 'optional', key_scale: 'required' }] as const) {
      expect(() => buffersOf({ storage: 'int8', policies })).toThrow(
        expect.objectContaining({
          name: 'AdapterError',
          code: 'layout-refused',
          message: expect.stringMatching(/layer 7: .* scales/),
        }),
      );
    }
    expect(() => buffersOf({ storage: 'int8', reusePolicy: 'optional', policies: { key_scale: 'required' } })).toThrow(
      /key is optional/,
    );
  });

  test('are for whole pages of numbers', () => {
    const wrong = { storage: 'int8', tokensPerBlockOverrides: { key: 8, key_scale: 4 } } as const;
    expect(() => buffersOf(wrong)).toThrow(
      expect.objectContaining({ code: 'layout-refused', message: expect.stringContaining('no whole pages of 8 of key') }),
    );
    expect(sizesOf({ ...wrong, tokensPerBlockOverrides: { key: 4, key_scale: 8 } })).toMatchObject({ key_scale: 2 * 8 });
  });
});
