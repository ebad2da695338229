import { readVectors } from '@bufferwise-internal/test-kit';
import { describe, expect, test } from 'vitest';
import { attention, buffer, input, ssm } from '../../test/builders.ts';
import type { BufferId } from '../config/buffer-config.ts';
import { type CacheConfigInput, defineCacheConfig } from '../config/cache-config.ts';
import { AmbiguousLayerError } from '../errors/ambiguous-layer-error.ts';
import { UnknownBufferError } from '../errors/unknown-buffer-error.ts';
import { type Lifecycle, lifecycleId } from './lifecycle.ts';
import { LifecycleRegistry } from './lifecycle-registry.ts';

interface LayoutCase {
  config: CacheConfigInput;
  lifecycles: Lifecycle[];
  grouping: BufferId[][];
  splitLayers: { layerId: number; groups: number[] }[];
  buffers: { layerId: number; role: string; group: number }[];
}

const registryOf = (layers: CacheConfigInput['layers']) => LifecycleRegistry.fromConfig(defineCacheConfig(input({ layers })));

describe('every published layout vector', () => {
  const cases = readVectors<LayoutCase>('layout').map((vector, index) => [index, vector] as const);

  test.each(cases)('%i: lifecycles and grouping', (_, { config, lifecycles, grouping, buffers }) => {
    const registry = LifecycleRegistry.fromConfig(defineCacheConfig(config));
    expect(registry.size).toBe(lifecycles.length);
    expect(registry.lifecycles).toEqual(lifecycles);
    expect(lifecycles.map((_lifecycle, id) => registry.get(lifecycleId(id)))).toEqual(lifecycles);
    expect(registry.bufferGrouping).toEqual(grouping);
    for (const { layerId, role, group } of buffers) expect(registry.getBufferGroupId(layerId, role)).toBe(group);
  });

  test.each(cases)('%i: split layers', (_, { config, grouping, splitLayers }) => {
    const registry = LifecycleRegistry.fromConfig(defineCacheConfig(config));
    const splitGroups = new Map(splitLayers.map(({ layerId, groups }) => [layerId, groups]));
    for (const { layerId } of config.layers) {
      const groups = [...grouping.keys()].filter((group) => grouping[group].some((id) => id.layerId === layerId));
      if (splitGroups.has(layerId)) {
        expect(() => registry.getLayerGroupId(layerId)).toThrow(
          expect.objectContaining({ code: 'ambiguous-layer', layerId, groups: splitGroups.get(layerId) }),
        );
      } else if (groups.length === 0) {
        expect(() => registry.getLayerGroupId(layerId)).toThrow(UnknownBufferError);
      } else {
        expect([registry.getLayerGroupId(layerId)]).toEqual(groups);
      }
    }
    if (splitLayers.length > 0) expect(() => registry.layerGrouping).toThrow(AmbiguousLayerError);
    else expect(registry.layerGrouping).toEqual(grouping.map((ids) => [...new Set(ids.map(({ layerId }) => layerId))]));
  });
});

describe('a registry', () => {
  const split = attention(5, { buffers: [buffer('key'), buffer('index', { reusePolicy: 'private' }), buffer('value')] });
  const mixed = registryOf([attention(1), split, ssm(9, { buffers: [] })]);

  test.each([
    ['an unknown layer', 7, 'key', 'unknown-layer', []],
    ['a layer without buffers', 9, 'ssm_state', 'unknown-layer', []],
    ['an unknown role', 5, 'keys', 'unknown-buffer', ['key', 'index', 'value']],
    ['a role with the name of a built-in', 5, '__proto__', 'unknown-buffer', ['key', 'index', 'value']],
  ])('asked for a buffer of %s says what there is', (_, layerId, role, code, knownRoles) => {
    expect(() => mixed.getBufferGroupId(layerId, role)).toThrow(expect.objectContaining({ code, layerId, role, knownRoles }));
  });

  test('asked for an absent buffer says that it is not there', () => {
    const registry = registryOf([attention(0, { buffers: [buffer('key'), buffer('scale', { size: 0 })] })]);
    expect(() => registry.getBufferGroupId(0, 'scale')).toThrow(UnknownBufferError);
  });

  test('asked for a layer names the layer, its groups and the way out', () => {
    expect(() => mixed.getLayerGroupId(5)).toThrow(
      expect.objectContaining({ code: 'ambiguous-layer', layerId: 5, groups: [0, 1] }),
    );
    expect(() => mixed.getLayerGroupId(5)).toThrow(/Layer 5 .*0, 1.*getBufferGroupId/);
    expect(() => mixed.getLayerGroupId(7)).toThrow(expect.objectContaining({ code: 'unknown-layer', layerId: 7, role: null }));
  });

  test('refuses the layer view as soon as one layer is split, and still answers for the others', () => {
    expect(() => mixed.layerGrouping).toThrow(expect.objectContaining({ layerId: 5, groups: [0, 1] }));
    expect(mixed.getLayerGroupId(1)).toBe(0);
  });

  test.each([-1, 2, 0.5, Number.NaN])('has no lifecycle %d', (id) => {
    expect(() => mixed.get(id as never)).toThrow(expect.objectContaining({ code: 'unknown-lifecycle', lifecycleId: id }));
  });

  test('cannot be changed', () => {
    const uniform = registryOf([attention(0)]);
    for (const value of [
      uniform,
      uniform.lifecycles,
      uniform.get(lifecycleId(0)),
      uniform.bufferGrouping,
      uniform.layerGrouping,
    ]) {
      expect(Object.isFrozen(value)).toBe(true);
    }
    expect(uniform.bufferGrouping.every((group) => Object.isFrozen(group) && group.every(Object.isFrozen))).toBe(true);
    expect(uniform.layerGrouping.every(Object.isFrozen)).toBe(true);
  });

  test('of a config without buffers is empty', () => {
    const registry = registryOf([attention(0, { buffers: [] }), ssm(1, { buffers: [] })]);
    expect([registry.size, registry.bufferGrouping, registry.layerGrouping]).toEqual([0, [], []]);
  });
});
