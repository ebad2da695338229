import {
  type BytesByPolicy,
  defineCacheConfig,
  type ModelPreset,
  type PresetOptions,
  type PresetVariant,
  presetLayers,
} from '@bufferwise/core-policy';
import { type ConfigExplanation, explain, formatBytes, formatCount } from '@bufferwise/scratch-allocator';
import type { NamedConfig } from '../input/model-config.ts';

export interface PlanOptions {
  readonly preset: PresetOptions & { variant: PresetVariant };
  /** Bytes on the device for all pages. */
  readonly memory: number;
  /** Lengths of requests to tell the cost of, ascending, in tokens. */
  readonly lengths: readonly number[];
  /** The length of a usual request in tokens: memory is shared out among the groups for it. */
  readonly typicalLength: number;
  /** Tokens that a prefill step takes. */
  readonly prefillChunk: number;
  /** Whether blocks that a windowed prefill outruns share slots. */
  readonly scratch: boolean;
}

/** One variant in the numbers that the two differ in. */
export interface VariantFigures {
  readonly variant: PresetVariant;
  /** Bytes that one token adds, by policy. */
  readonly bytesPerToken: BytesByPolicy;
  /** Bytes of the recurrent buffers of one sequence, by policy; a snapshot carries the required and the optional ones. */
  readonly bytesPerSequence: BytesByPolicy;
  /** Requests that fit at a time. Index as in `lengths`; null where nothing limits them. */
  readonly numFitting: readonly (number | null)[];
}

/** What a cache for a model comes to. Plain data, in exact bytes. */
export interface Plan {
  readonly model: string;
  readonly memory: number;
  readonly typicalLength: number;
  readonly lengths: readonly number[];
  /** The variant that was asked for. */
  readonly preset: ModelPreset;
  readonly explanation: ConfigExplanation;
  /** Both variants, `whole` first. */
  readonly variants: readonly [VariantFigures, VariantFigures];
  /** What `split` frees, whichever variant was asked for. */
  readonly split: Pick<ModelPreset, 'savings' | 'notes'>;
  /** What will not work as asked, in sentences. */
  readonly warnings: readonly string[];
}

/** Bytes that a device binds in one piece unless more is asked for. */
const DEFAULT_BINDING_BYTES = 128 * 2 ** 20;

/**
 * Plans a cache.
 *
 * @throws {PresetError} on a model that is not known or not sound; {ConfigError} on options that fit no cache
 */
export function makePlan({ name, config }: NamedConfig, options: PlanOptions): Plan {
  const [whole, split] = (['whole', 'split'] as const).map((variant) => planVariant(config, variant, options));
  const { preset, explanation } = options.preset.variant === 'whole' ? whole : split;
  return {
    model: name,
    memory: options.memory,
    typicalLength: options.typicalLength,
    lengths: options.lengths,
    preset,
    explanation,
    variants: [figures(whole), figures(split)],
    split: { savings: split.preset.savings, notes: split.preset.notes.filter((note) => !whole.preset.notes.includes(note)) },
    warnings: warningsOf(explanation),
  };
}

interface PlannedVariant {
  readonly preset: ModelPreset;
  readonly explanation: ConfigExplanation;
}

function planVariant(modelConfig: unknown, variant: PresetVariant, options: PlanOptions): PlannedVariant {
  const preset = presetLayers(modelConfig, { ...options.preset, variant });
  const config = defineCacheConfig({
    tokensPerBlock: preset.tokensPerBlock,
    layers: preset.layers,
    tiers: [{ tier: 'device', quota: options.memory }],
    typicalStep: { kvCaches: [{ capacity: options.typicalLength, historyLength: options.typicalLength - 1 }] },
    swaScratchReuse: options.scratch ? {} : null,
  });
  return { preset, explanation: explain(config, { lengths: options.lengths, prefillChunks: [options.prefillChunk] }) };
}

function figures({ preset, explanation }: PlannedVariant): VariantFigures {
  return {
    variant: preset.variant,
    bytesPerToken: preset.bytesPerToken,
    bytesPerSequence: preset.bytesPerSequence,
    numFitting: explanation.totals.requests.map(({ numFitting }) => (Number.isFinite(numFitting) ? numFitting : null)),
  };
}

function warningsOf({ groups, tiers, totals }: ConfigExplanation): string[] {
  const warnings: string[] = [];
  const [device] = tiers;
  if (device.raised) {
    warnings.push(
      `The memory is too small for one request, so it was raised from ${formatBytes(device.askedQuota)} to ${formatBytes(device.quota)}.`,
    );
  }
  for (const { tokens, bytes, numFitting } of totals.requests) {
    if (numFitting >= 1) continue;
    warnings.push(`A request of ${formatCount(tokens)} tokens does not fit: it takes ${formatBytes(bytes)}.`);
  }
  const largest = Math.max(
    0,
    ...groups.flatMap(({ pools, poolGroup }) => pools.map(({ slotBytes }) => slotBytes * device.poolGroups[poolGroup].slots)),
  );
  if (largest > DEFAULT_BINDING_BYTES) {
    warnings.push(
      `The largest pool has ${formatBytes(largest)}, and a WebGPU device binds ${formatBytes(DEFAULT_BINDING_BYTES)} at once unless it is asked for ` +
        'more: ask for maxStorageBufferBindingSize and maxBufferSize, or cut the pools with cutPools.',
    );
  }
  const odd = groups.find(({ pools }) => pools.some(({ slotBytes }) => slotBytes % 4 !== 0));
  if (odd !== undefined) {
    warnings.push(
      `Group ${odd.id} has slots that are no multiple of 4 bytes, which a GPU does not copy: take more tokens a block.`,
    );
  }
  return warnings;
}
