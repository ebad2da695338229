import { divUp } from '../block-range.ts';
import { FaultLog } from '../config/fault-log.ts';
import { readFields } from '../config/read-fields.ts';
import { PresetError, type PresetFaultCode } from '../errors/preset-error.ts';
import { dtypeBytes } from './cache-dtype.ts';
import { familyOf, noteUnknownFamily } from './families.ts';
import type { Family } from './family.ts';
import { bytesByPolicy, layersOf, originsOf, savingsOf } from './layer-stack.ts';
import { fieldOf, type ModelFields, modelFields, pathOf } from './model-fields.ts';
import type { BytesByPolicy, ModelPreset } from './model-preset.ts';
import type { ModelShape, ValueBytes } from './model-shape.ts';
import { type PresetOptions, type ResolvedPresetOptions, readPresetOptions } from './preset-options.ts';
import { splitPolicies } from './split-policies.ts';

const TEXT_ONLY = 'Read from text_config: what the other parts of the model keep is not counted.';

/** Values that share one scale of an 8-bit index key. */
const VALUES_PER_SCALE = 128;

/**
 * Turns the `config.json` of a model, as Hugging Face serves it, into the layers of a cache config: pages sized exactly, ids as
 * in the model, windows where the model has them. The config may come from anywhere; it is read once, own properties only, and
 * not kept.
 *
 * A model that also sees or hears is read for its `text_config`. Sizes are those of the whole model: on a shard divide them, or
 * set to 0 what the shard does not have.
 *
 * @param modelConfig the parsed file
 * @throws {PresetError} when the family is unknown, or a field is missing, wrong or at odds with another; it tells every fault
 *   with code and path
 * @example
 * const { layers, tokensPerBlock } = presetLayers(JSON.parse(text), { tokensPerBlock: 32, variant: 'split' });
 * const config = defineCacheConfig({ tokensPerBlock, layers, tiers: [{ tier: 'device', quota: 1 << 30 }] });
 */
export function presetLayers(modelConfig: unknown, options: PresetOptions): ModelPreset {
  const faults = new FaultLog<PresetFaultCode>();
  const resolved = readPresetOptions(faults, options);
  const found = findTextModel(faults, modelConfig);
  const shape = found?.family.read(found.model, valueBytes(resolved));
  const preset = resolved && found && shape && presetOf(faults, found, shape, resolved);
  faults.throwIfAny(PresetError);
  return preset as ModelPreset;
}

interface TextModel {
  family: Family;
  model: ModelFields;
}

/** The object that describes the text model, and its family: the config itself, or its `text_config`. */
function findTextModel(faults: FaultLog<PresetFaultCode>, modelConfig: unknown): TextModel | undefined {
  const fields = readFields(faults, '', modelConfig);
  if (fields === undefined) return undefined;
  const whole = modelFields(faults, '', fields);
  const family = familyOf(whole);
  if (family !== undefined) return { family, model: whole };
  const textConfig = fieldOf(whole, 'text_config');
  const textFields = textConfig === undefined ? undefined : readFields(faults, pathOf(whole, 'text_config'), textConfig);
  if (textConfig !== undefined && textFields === undefined) return undefined;
  const model = textFields === undefined ? whole : modelFields(faults, 'text_config', textFields);
  const textFamily = textFields && familyOf(model);
  if (textFamily !== undefined) return { family: textFamily, model };
  noteUnknownFamily(model);
  return undefined;
}

/** Bytes of values as the options say; NaN for all while the options are at fault. */
function valueBytes(options: ResolvedPresetOptions | undefined): ValueBytes {
  if (options === undefined) return { kv: Number.NaN, state: Number.NaN, conv: Number.NaN, indexKey: () => Number.NaN };
  const scaleBytes = options.indexKeyDtype === 'f8' ? 4 : 0;
  return {
    kv: dtypeBytes(options.kvDtype),
    state: dtypeBytes(options.stateDtype),
    conv: dtypeBytes(options.convDtype),
    indexKey: (numValues) => numValues * dtypeBytes(options.indexKeyDtype) + divUp(numValues, VALUES_PER_SCALE) * scaleBytes,
  };
}

function presetOf(
  faults: FaultLog<PresetFaultCode>,
  { family, model }: TextModel,
  shape: ModelShape,
  options: ResolvedPresetOptions,
): ModelPreset | undefined {
  if (faults.count > 0) return undefined;
  const policies = splitPolicies(shape, options);
  const origins = originsOf(shape);
  const layers = layersOf(shape, origins, options, policies);
  const bytesPerBlock = bytesByPolicy(layers, 'attention');
  const bytesPerSequence = bytesByPolicy(layers, 'ssm');
  refuseUncountable(faults, bytesPerBlock, bytesPerSequence);
  return deepFreeze({
    family: family.name,
    variant: options.variant,
    tokensPerBlock: options.tokensPerBlock,
    layers,
    origins,
    bytesPerToken: perToken(bytesPerBlock, options.tokensPerBlock),
    bytesPerSequence,
    savings: savingsOf(shape, origins, options, policies),
    notes: [...(model.path === '' ? [] : [TEXT_ONLY]), ...shape.notes, ...policies.notes],
  });
}

/** Sizes are exact only while their sum can be counted; `defineCacheConfig` refuses them later for the same reason. */
function refuseUncountable(faults: FaultLog<PresetFaultCode>, perBlock: BytesByPolicy, perSequence: BytesByPolicy): void {
  const sum = ({ required, optional, private: own }: BytesByPolicy) => required + optional + own;
  const bytes = sum(perBlock) + sum(perSequence);
  if (bytes <= Number.MAX_SAFE_INTEGER) return;
  const message = `one block of all buffers takes ${bytes} bytes, more than the ${Number.MAX_SAFE_INTEGER} that can be counted.`;
  faults.note('config-out-of-range', '', bytes, message);
}

function perToken({ required, optional, private: own }: BytesByPolicy, tokensPerBlock: number): BytesByPolicy {
  return { required: required / tokensPerBlock, optional: optional / tokensPerBlock, private: own / tokensPerBlock };
}

/** Freezes plain objects and arrays to any depth. Parts that are shared are frozen once. */
function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const part of Object.values(value)) deepFreeze(part);
  return value;
}
