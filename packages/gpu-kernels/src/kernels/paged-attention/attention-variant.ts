import type { BindingTypes } from '../../kernel/binding-text.ts';
import { sinkVecs } from './attention-params.ts';
import type { FullAttentionShape } from './attention-shape.ts';
import type { TextConstants } from './kernel-text.ts';
import keyCountSelected from './pieces/key-count-selected.wgsl';
import keyCountWindow from './pieces/key-count-window.wgsl';
import keys from './pieces/keys.wgsl';
import lanesAlone from './pieces/lanes-alone.wgsl';
import lanesSubgroup from './pieces/lanes-subgroup.wgsl';
import scalesInKeys from './pieces/scales-in-keys.wgsl';
import scalesNone from './pieces/scales-none.wgsl';
import scalesOfKeys from './pieces/scales-of-keys.wgsl';
import scalesOfValues from './pieces/scales-of-values.wgsl';
import storedF16 from './pieces/stored-f16.wgsl';
import storedF16Packed from './pieces/stored-f16-packed.wgsl';
import storedF32 from './pieces/stored-f32.wgsl';
import storedInt8 from './pieces/stored-int8.wgsl';
import valuesInKeys from './pieces/values-in-keys.wgsl';
import valuesOwn from './pieces/values-own.wgsl';
import visibleSelected from './pieces/visible-selected.wgsl';
import visibleWindow from './pieces/visible-window.wgsl';

/** Which kernels serve a shape on a device: what is put together to their text. */
export interface AttentionVariant {
  shape: FullAttentionShape;
  /** f16 is read as such: needs `shader-f16`. Else it is unpacked. */
  nativeF16: boolean;
  /** Threads that are surely in one subgroup, a power of two: needs `subgroups`. 1 = subgroups are not used. */
  subgroupWidth: number;
}

/** The variant that is best on a device, of those that use no other features than `features`. */
export function variantOf(
  shape: FullAttentionShape,
  features: ReadonlySet<string>,
  subgroupMinSize: number | undefined,
): AttentionVariant {
  return {
    shape,
    nativeF16: shape.storage === 'f16' && features.has('shader-f16'),
    subgroupWidth: features.has('subgroups') ? Math.max(1, subgroupMinSize ?? 1) : 1,
  };
}

/** Features that the variant needs. `lanes`: threads that speak to each other through their subgroup. */
export function variantFeatures({ nativeF16 }: AttentionVariant, lanes: number): GPUFeatureName[] {
  return [...(nativeF16 ? (['shader-f16'] as const) : []), ...(lanes > 1 ? (['subgroups'] as const) : [])];
}

/** What WGSL wants in front of everything else for these features. */
export function enableText(features: readonly GPUFeatureName[]): string {
  return features.map((feature) => `enable ${feature === 'shader-f16' ? 'f16' : feature};\n`).join('');
}

export function variantConstants({ shape }: AttentionVariant, lanes: number): TextConstants {
  return {
    HEAD_DIM: shape.headDim,
    VALUE_DIM: shape.valueDim,
    HEADS_PER_GROUP: shape.numQueryHeads / shape.numKvHeads,
    SOFT_CAP: shape.softCap !== undefined,
    LEARNED_SINKS: shape.learnedSinks,
    SINK_VECS: sinkVecs(shape),
    QUANTISED: shape.storage === 'int8',
    LANES: lanes,
  };
}

/** Bindings through which keys, values and all that tells where they are is read: at most 7 storage buffers. */
export function readBindings({ shape }: AttentionVariant): BindingTypes {
  const { valuesInKeys, storage, selectsBlocks } = shape;
  const quantised = storage === 'int8';
  return {
    params: ['uniform', 'Params'],
    indices: ['read-only-storage', 'array<i32>'],
    queries: ['read-only-storage', 'array<vec4f>'],
    keyPool: ['read-only-storage', 'array<Stored>'],
    ...(valuesInKeys ? {} : { valuePool: ['read-only-storage', 'array<Stored>'] as const }),
    ...(quantised ? { keyScales: ['read-only-storage', 'array<f32>'] as const } : {}),
    ...(quantised && !valuesInKeys ? { valueScales: ['read-only-storage', 'array<f32>'] as const } : {}),
    ...(selectsBlocks ? { selection: ['read-only-storage', 'array<i32>'] as const } : {}),
  };
}

/** The pieces of text that read keys and values. */
export function readPieces({ shape, nativeF16 }: AttentionVariant): string[] {
  const { storage } = shape;
  const stored = { f32: storedF32, f16: nativeF16 ? storedF16 : storedF16Packed, int8: storedInt8 }[storage];
  const scales = storage !== 'int8' ? [scalesNone] : [scalesOfKeys, shape.valuesInKeys ? scalesInKeys : scalesOfValues];
  return [stored, keys, shape.valuesInKeys ? valuesInKeys : valuesOwn, ...scales, visiblePiece(shape)];
}

function visiblePiece({ selectsBlocks }: FullAttentionShape): string {
  return selectsBlocks ? visibleSelected : visibleWindow;
}

/** The piece that counts the keys of a request. */
export function keyCountPiece({ selectsBlocks }: FullAttentionShape): string {
  return selectsBlocks ? keyCountSelected : keyCountWindow;
}

export function lanesPiece(lanes: number): string {
  return lanes > 1 ? lanesSubgroup : lanesAlone;
}
