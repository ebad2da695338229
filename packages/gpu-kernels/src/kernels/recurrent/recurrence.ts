import { type BindingTypes, bindingKinds, bindingText } from '../../kernel/binding-text.ts';
import type { Binding } from '../../kernel/compute-step.ts';
import type { Kernel, KernelConstants } from '../../kernel/kernel.ts';
import { paramText } from '../../kernel/param-text.ts';
import { type ParamLayout, packParams } from '../../kernel/params.ts';
import { numPagesOf, type RequestPages, requirePages, requireRows, requireWords, type TokenRows, wordsOf } from './operands.ts';
import type { PackedRequests } from './packed-requests.ts';
import sumSubgroup from './pieces/slice-sum-subgroup.wgsl';
import sumWorkgroup from './pieces/slice-sum-workgroup.wgsl';
import stateTile from './pieces/state-tile.wgsl';
import storedHalves from './pieces/stored-halves.wgsl';
import storedScalars from './pieces/stored-scalars.wgsl';
import { requireStateShape, type StateShape, slicesOf, stateNumbers } from './state-shape.ts';
import { joinTables, type Words } from './tables.ts';
import type { RecurrentVariant } from './variant.ts';

/** What makes a Mamba-2 layer or a gated delta net of the recurrence that they share. */
export interface RecurrentFamily {
  /** Labels of its kernels begin with it. */
  readonly label: string;
  /** WGSL: what a token brings; see state-tile.wgsl for the functions it is asked for. */
  readonly tokens: string;
  /** Constants that the WGSL is compiled with. `DELTA`: a token's u depends on what the state remembers for its key. */
  readonly constants: Readonly<{ DELTA: boolean; NORMALIZE: boolean }>;
  /** What its callers know `tokens` and `gates` as. */
  readonly operandNames: Readonly<{ tokens: string; gates: string }>;
  /** Its own parameters and buffers, behind those of every family. */
  readonly params: ParamLayout;
  readonly storage: BindingTypes;
}

/** One call, as every family hands it to scan, step and replay. */
export interface RecurrentCall {
  family: RecurrentFamily;
  shape: StateShape;
  requests: PackedRequests;
  /** Rows behind the convolution, `tokenWords` each. */
  tokens: TokenRows;
  tokenWords: number;
  /** `[numTokens, numHeads] f32`. */
  gates: TokenRows;
  /** `[headParamRows, numHeads] f32`. */
  headParams: Words;
  headParamRows: number;
  state: RequestPages;
  /** `[numTokens, numHeads * headDim] f32`. */
  y: TokenRows;
  /** Of the family's own. */
  params: Readonly<Record<string, number>>;
  bindings: Readonly<Record<string, Binding>>;
}

export type RecurrentConstant = 'NUM_HEADS' | 'HEAD_DIM' | 'STATE_SIZE' | 'NUM_GROUPS';
export type RecurrentKernel<Constant extends string> = Kernel<string, Constant, PackedRequests>;

const baseParams = {
  numRequests: 'u32',
  startsOffset: 'u32',
  tokensOffset: 'u32',
  tokensStride: 'u32',
  gatesOffset: 'u32',
  gatesStride: 'u32',
  headParamsOffset: 'u32',
  stateIndexOffset: 'u32',
  stateTargetOffset: 'u32',
  stateBase: 'u32',
  stateStride: 'u32',
  numStatePages: 'u32',
  yOffset: 'u32',
  yStride: 'u32',
} as const satisfies ParamLayout;

/** Text and bindings of a kernel of the recurrence. */
export function recurrentText(
  family: RecurrentFamily,
  { stored, subgroups }: RecurrentVariant,
  own: {
    params?: ParamLayout;
    storage?: BindingTypes;
    constants?: Readonly<Record<string, boolean>>;
    parts: readonly string[];
  },
) {
  const bindings: BindingTypes = {
    params: ['uniform', 'Params'],
    tables: ['read-only-storage', 'array<u32>'],
    tokens: ['read-only-storage', 'array<f32>'],
    gates: ['read-only-storage', 'array<f32>'],
    headParams: ['read-only-storage', 'array<f32>'],
    statePages: ['storage', `array<${stored === 'halves' ? 'u32' : stored}>`],
    y: ['storage', 'array<f32>'],
    ...family.storage,
    ...own.storage,
  };
  const constants = Object.entries({ ...family.constants, SUBGROUPS: subgroups, ...own.constants });
  const features: GPUFeatureName[] = [];
  if (stored === 'f16') features.push('shader-f16');
  if (subgroups) features.push('subgroups');
  const enables: Partial<Record<GPUFeatureName, string>> = { 'shader-f16': 'enable f16;', subgroups: 'enable subgroups;' };
  const code = [
    ...features.map((feature) => enables[feature]),
    paramText({ ...baseParams, ...family.params, ...own.params }),
    bindingText(bindings),
    ...constants.map(([name, value]) => `const ${name} = ${value};`),
    ...(stored === 'halves' ? [storedHalves] : [`alias Stored = ${stored};`, storedScalars]),
    stateTile,
    family.tokens,
    subgroups ? sumSubgroup : sumWorkgroup,
    ...own.parts,
  ].join('\n');
  return { code, bindings: bindingKinds(bindings), features };
}

export function shapeConstants(shape: StateShape): KernelConstants<RecurrentConstant> {
  return { NUM_HEADS: shape.numHeads, HEAD_DIM: shape.headDim, STATE_SIZE: shape.stateSize, NUM_GROUPS: shape.numGroups };
}

/** The largest workgroup of every kernel here: enough to hide latency, and within the limits of every device. */
export const MAX_WORKGROUP_SIZE = 64;
/** Bytes, the default limit of every WebGPU device. */
export const MAX_WORKGROUP_STORAGE = 16_384;

/** Bytes of workgroup memory through which a workgroup of so many invocations sums over slices. */
export function sliceSumBytes(workgroupSize: number, stateSize: number, { subgroups }: RecurrentVariant): number {
  return subgroups ? 0 : 16 * (slicesOf(stateSize) > 1 ? workgroupSize : 1);
}

/** @throws {KernelError} `kernel-dispatch` or `kernel-layout` when an operand does not fit the shape */
export function requireCall(label: string, call: RecurrentCall): void {
  const { shape, requests, tokens, gates, headParams, state, y } = call;
  requireStateShape(label, shape);
  requireWords(label, 'requests.starts', requests.starts, requests.numRequests + 1);
  requireRows(label, call.family.operandNames.tokens, tokens, requests.numTokens, call.tokenWords);
  requireRows(label, call.family.operandNames.gates, gates, requests.numTokens, shape.numHeads);
  requireWords(label, 'headParams', headParams, call.headParamRows * shape.numHeads);
  requirePages(label, 'state', state, requests.numRequests, statePageWords(label, call));
  requireRows(label, 'y', y, requests.numTokens, shape.numHeads * shape.headDim);
}

/** Words of a state page. Rows of f16 fill their words, so that no two invocations write the same one. */
function statePageWords(label: string, { shape, state }: RecurrentCall): number {
  const dtype = state.dtype ?? 'f32';
  return shape.numHeads * shape.headDim * wordsOf(label, 'stateSize', shape.stateSize, dtype);
}

/**
 * Parameters and bindings of a call.
 * @param own parameters, tables and bindings that only this kernel has; tables get the parameter `<name>Offset`
 */
export function bindCall(
  label: string,
  call: RecurrentCall,
  own: {
    layout: ParamLayout;
    params: Readonly<Record<string, number>>;
    tables: Readonly<Record<string, Words>>;
    bindings?: Readonly<Record<string, Binding>>;
  },
): { params: Uint8Array; bindings: Readonly<Record<string, Binding>> } {
  const { family, shape, requests, tokens, gates, headParams, state, y } = call;
  const { tables, offsets } = joinTables<string>(label, {
    starts: requests.starts,
    stateIndex: state.pageIndex,
    stateTarget: state.targetIndex ?? state.pageIndex,
    ...own.tables,
  });
  const tableOffsets = Object.fromEntries(Object.entries(offsets).map(([name, offset]) => [`${name}Offset`, offset]));
  const pageWords = statePageWords(label, call);
  const perWord = stateNumbers(shape) / pageWords;
  const params = packParams(
    { ...baseParams, ...family.params, ...own.layout },
    {
      ...call.params,
      ...own.params,
      ...(tableOffsets as { startsOffset: number; stateIndexOffset: number; stateTargetOffset: number }),
      numRequests: requests.numRequests,
      tokensOffset: tokens.offsetWords,
      tokensStride: tokens.strideWords,
      gatesOffset: gates.offsetWords,
      gatesStride: gates.strideWords,
      headParamsOffset: headParams.offsetWords ?? 0,
      stateBase: state.baseWords * perWord,
      stateStride: state.strideWords * perWord,
      numStatePages: numPagesOf(state, pageWords),
      yOffset: y.offsetWords,
      yStride: y.strideWords,
    },
  );
  const bindings = {
    tables,
    tokens: tokens.buffer,
    gates: gates.buffer,
    headParams: headParams.buffer,
    statePages: state.pool,
    y: y.buffer,
    ...call.bindings,
    ...own.bindings,
  };
  return { params, bindings };
}

/** One kernel for each family and variant, made when it is first asked for: compiled pipelines are known by their kernel. */
export function kernelsByVariant<K, Variant extends RecurrentVariant = RecurrentVariant>(
  make: (family: RecurrentFamily, variant: Variant) => K,
): (family: RecurrentFamily, variant: Variant) => K {
  const made = new WeakMap<RecurrentFamily, Map<string, K>>();
  return (family, variant) => {
    const ofFamily = made.get(family) ?? new Map<string, K>();
    made.set(family, ofFamily);
    const key = variantName(variant);
    const known = ofFamily.get(key) ?? make(family, variant);
    ofFamily.set(key, known);
    return known;
  };
}

/** For labels: the state's storage, the ring's, and how sums are made. */
export function variantName(variant: RecurrentVariant & { ringDtype?: string }): string {
  return [variant.stored, variant.ringDtype && `ring ${variant.ringDtype}`, variant.subgroups && 'subgroups']
    .filter(Boolean)
    .join(' ');
}
