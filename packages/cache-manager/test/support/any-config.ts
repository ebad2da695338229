import type { CacheConfigInput } from '@bufferwise/core-policy';
import fc from 'fast-check';
import { type LayerShape, model } from './stage.ts';

const anyPolicy = fc.constantFrom('required', 'required', 'optional', 'private' as const);

export interface AnyConfigOptions {
  slots: fc.Arbitrary<number>;
  /** Slots of a colder tier, or undefined for none. */
  hostSlots?: fc.Arbitrary<number | undefined>;
  diskSlots?: fc.Arbitrary<number | undefined>;
}

const none = fc.constant(undefined);

/** Any config of up to four layers, with so many slots in each pool group. */
export function anyConfig({ slots, hostSlots = none, diskSlots = none }: AnyConfigOptions): fc.Arbitrary<CacheConfigInput> {
  const anyLayer = fc.record({
    kind: fc.constantFrom('full', 'windowed', 'windowed', 'ssm' as const),
    policy: anyPolicy,
    window: fc.integer({ min: 1, max: 9 }),
    sinkBlocks: fc.constantFrom(0, 0, 0, 1, 2),
    numRoles: fc.integer({ min: 1, max: 3 }),
  });
  return fc
    .record({
      tokensPerBlock: fc.constantFrom(1, 2, 3, 4, 4),
      layers: fc.array(anyLayer, { minLength: 1, maxLength: 4 }),
      slots: fc.array(slots, { minLength: 4, maxLength: 4 }),
      hostSlots,
      diskSlots,
      commitMinSnapshot: fc.constantFrom(undefined, true, false),
      enablePartialReuse: fc.boolean(),
      reuseMatchBackoff: fc.constantFrom(0, 0, 0, 1, 3),
      maxRewindLen: fc.constantFrom(null, null, 0, 2, 5),
      maxUtilForResume: fc.constantFrom(1, 1, 0.7),
    })
    .map(({ tokensPerBlock, layers, maxRewindLen, commitMinSnapshot, ...rest }) => {
      const shapes = layers.map(({ kind, policy, window, sinkBlocks, numRoles }): LayerShape => {
        const roles = Array.from({ length: numRoles }, (_, role) => `part${role}`);
        if (kind === 'ssm') return { type: 'ssm', reusePolicy: policy, roles };
        if (kind === 'full') return { type: 'attention', reusePolicy: policy, roles };
        return {
          type: 'attention',
          slidingWindowSize: window,
          numSinkTokens: sinkBlocks * tokensPerBlock,
          reusePolicy: policy,
          roles,
        } as LayerShape;
      });
      const hasState = layers.some(({ kind }) => kind === 'ssm');
      return model(shapes, {
        ...rest,
        tokensPerBlock,
        commitMinSnapshot: hasState ? undefined : commitMinSnapshot,
        swaScratchReuse: maxRewindLen === null ? null : { maxRewindLen },
      });
    });
}
