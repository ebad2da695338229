import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { input } from '../../test/builders.ts';
import type { BufferConfig } from '../config/buffer-config.ts';
import { defineCacheConfig } from '../config/cache-config.ts';
import type { LayerConfig } from '../config/layer-config.ts';
import { sameLifecycle } from './lifecycle.ts';
import { LifecycleRegistry } from './lifecycle-registry.ts';

const TOKENS_PER_BLOCK = 4;
const policy = fc.constantFrom(undefined, 'required' as const, 'optional' as const, 'private' as const);

const buffers: fc.Arbitrary<BufferConfig[]> = fc.uniqueArray(
  fc.record({ role: fc.constantFrom('a', 'b', 'c', 'd'), size: fc.constantFrom(0, 64, 128), reusePolicy: policy }),
  { selector: ({ role }) => role },
);

const attentionFields = fc.oneof(
  fc.constant({}),
  fc.record({ slidingWindowSize: fc.constantFrom(2, 8), numSinkTokens: fc.constantFrom(undefined, 0, 3, 4, 5) }),
);

const layer = fc.oneof(
  fc.record({ type: fc.constant('ssm' as const), buffers, reusePolicy: policy }),
  fc
    .tuple(attentionFields, fc.record({ buffers, reusePolicy: policy, sparsityGroup: fc.constantFrom(undefined, 'x', 'y') }))
    .map(([window, rest]) => ({ type: 'attention' as const, ...window, ...rest })),
);

const layers: fc.Arbitrary<LayerConfig[]> = fc
  .array(layer, { maxLength: 12 })
  .map((list) => list.map((fields, layerId) => ({ ...fields, layerId })));

const registryOf = (list: readonly LayerConfig[]) =>
  LifecycleRegistry.fromConfig(defineCacheConfig(input({ tokensPerBlock: TOKENS_PER_BLOCK, layers: list })));

const realBuffersOf = (list: readonly LayerConfig[]) =>
  list.flatMap(({ layerId, buffers: own }) => own.filter(({ size }) => size > 0).map(({ role }) => ({ layerId, role })));

describe('whatever the layers are', () => {
  test('the groups are a partition of the real buffers, each in config order, none empty', () => {
    fc.assert(
      fc.property(layers, (list) => {
        const { bufferGrouping } = registryOf(list);
        const order = realBuffersOf(list).map((id) => JSON.stringify(id));
        const grouped = bufferGrouping.map((group) => group.map((id) => order.indexOf(JSON.stringify(id))));
        expect(grouped.every((group) => group.length > 0)).toBe(true);
        for (const group of grouped) expect(group).toEqual([...group].sort((a, b) => a - b));
        expect(grouped.flat().sort((a, b) => a - b)).toEqual([...order.keys()]);
      }),
    );
  });

  test('lookup and grouping agree', () => {
    fc.assert(
      fc.property(layers, (list) => {
        const registry = registryOf(list);
        registry.bufferGrouping.forEach((group, id) => {
          for (const { layerId, role } of group) expect(registry.getBufferGroupId(layerId, role)).toBe(id);
        });
      }),
    );
  });

  test('no two ids mean the same, and ids follow the first appearance', () => {
    fc.assert(
      fc.property(layers, (list) => {
        const { lifecycles, bufferGrouping } = registryOf(list);
        lifecycles.forEach((a, i) => {
          for (const b of lifecycles.slice(i + 1)) expect(sameLifecycle(a, b)).toBe(false);
        });
        const order = realBuffersOf(list).map((id) => JSON.stringify(id));
        const firsts = bufferGrouping.map(([first]) => order.indexOf(JSON.stringify(first)));
        expect(firsts).toEqual([...firsts].sort((a, b) => a - b));
      }),
    );
  });

  test('there are at most three lifecycles for each attention combination, and at most three of recurrent state', () => {
    fc.assert(
      fc.property(layers, (list) => {
        const counts = new Map<string, number>();
        for (const { policy: _, ...combination } of registryOf(list).lifecycles) {
          const key = JSON.stringify(combination);
          counts.set(key, (counts.get(key) ?? 0) + 1);
        }
        expect(Math.max(0, ...counts.values())).toBeLessThanOrEqual(3);
      }),
    );
  });

  test('ids do not depend on how many layers share a meaning', () => {
    fc.assert(
      fc.property(layers, fc.integer({ min: 1, max: 4 }), (list, copies) => {
        const repeated = Array.from({ length: copies }, (_, copy) =>
          list.map((original) => ({ ...original, layerId: original.layerId + copy * list.length })),
        ).flat();
        expect(registryOf(repeated).lifecycles).toEqual(registryOf(list).lifecycles);
      }),
    );
  });

  test('absent buffers and layers without buffers leave no trace', () => {
    fc.assert(
      fc.property(layers, (list) => {
        const present = list.map((original) => ({ ...original, buffers: original.buffers.filter(({ size }) => size > 0) }));
        const withBuffers = present.filter(({ buffers: own }) => own.length > 0);
        const { lifecycles, bufferGrouping } = registryOf(list);
        for (const same of [registryOf(present), registryOf(withBuffers)]) {
          expect([same.lifecycles, same.bufferGrouping]).toEqual([lifecycles, bufferGrouping]);
        }
      }),
    );
  });

  test('the layer view equals the buffer view where no layer is split, and is refused where one is', () => {
    fc.assert(
      fc.property(layers, (list) => {
        const registry = registryOf(list);
        const groupsOf = (layerId: number) => [
          ...new Set(
            realBuffersOf(list)
              .filter((id) => id.layerId === layerId)
              .map(({ role }) => registry.getBufferGroupId(layerId, role)),
          ),
        ];
        for (const { layerId } of list) {
          const groups = groupsOf(layerId);
          if (groups.length === 1) expect(registry.getLayerGroupId(layerId)).toBe(groups[0]);
          else expect(() => registry.getLayerGroupId(layerId)).toThrow();
        }
        if (list.some(({ layerId }) => groupsOf(layerId).length > 1)) {
          expect(() => registry.layerGrouping).toThrow(expect.objectContaining({ code: 'ambiguous-layer' }));
        } else {
          const expected = registry.bufferGrouping.map((group) => [...new Set(group.map(({ layerId }) => layerId))]);
          expect(registry.layerGrouping).toEqual(expected);
        }
      }),
    );
  });
});
