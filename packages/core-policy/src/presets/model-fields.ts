import type { FaultLog } from '../config/fault-log.ts';
import { describe, type Fields, join, readBoolean, readChoice, readWhole, type WholeLimits } from '../config/read-fields.ts';
import type { PresetFaultCode } from '../errors/preset-error.ts';

/*
 * The fields of a model's config, read one by one. A field that is null counts as left out, as in the classes that write
 * these files.
 *
 * A number that is at fault is noted and comes back as NaN: arithmetic carries it on, and no comparison with it is true, so one
 * fault causes no second. Nothing that was computed with it is handed out, since `presetLayers` throws. Checks are therefore
 * written as comparisons that are true when something is wrong.
 */

/** The object that a family reads: the model's config, or the part of it that describes the text model. */
export interface ModelFields {
  readonly faults: FaultLog<PresetFaultCode>;
  /** Where the object is; empty for the config itself. */
  readonly path: string;
  readonly fields: Fields;
  /** Sizes that were read, by key. A size that two rules ask for is blamed once. */
  readonly sizes: Map<string, number>;
}

/** What a family reads from, before it has read anything. */
export function modelFields(faults: FaultLog<PresetFaultCode>, path: string, fields: Fields): ModelFields {
  return { faults, path, fields, sizes: new Map() };
}

/** No model comes near; a list as long as a hostile number says could not be made. */
export const MAX_LAYERS = 4096;
/** Heads, widths and ranks: far above any model, and small enough that few of them multiplied are exact. */
const MAX_SIZE = 2 ** 20;

/** Where a field is, as one would write it in code. */
export function pathOf(model: ModelFields, key: string): string {
  return join(model.path, key);
}

/** The value of a field; undefined when it is left out or null. */
export function fieldOf(model: ModelFields, key: string): unknown {
  return model.fields[key] ?? undefined;
}

/** The first of several names that a field goes by and that is there; the first name when none is. */
export function presentKey(model: ModelFields, keys: readonly string[]): string {
  return keys.find((key) => fieldOf(model, key) !== undefined) ?? keys[0];
}

/** Reads a number of heads, a width or a rank, > 0; `fallback` stands in for a field that is left out. */
export function readSize(model: ModelFields, key: string, fallback?: number): number {
  if (fieldOf(model, key) === undefined && fallback !== undefined) return fallback;
  const known = model.sizes.get(key);
  if (known !== undefined) return known;
  const size = readNumber(model, key, { min: 1, max: MAX_SIZE, unit: 'elements' });
  model.sizes.set(key, size);
  return size;
}

/** Reads how many layers the model has, 1 to 4,096. */
export function readNumLayers(model: ModelFields): number {
  return readNumber(model, 'num_hidden_layers', { min: 1, max: MAX_LAYERS, unit: 'layers' });
}

/** Reads a number of tokens or layers within limits, with a default for a field that is left out. */
export function readCount(model: ModelFields, key: string, limits: WholeLimits, fallback?: number): number {
  return fieldOf(model, key) === undefined && fallback !== undefined ? fallback : readNumber(model, key, limits);
}

function readNumber(model: ModelFields, key: string, limits: WholeLimits): number {
  const value = fieldOf(model, key);
  if (value !== undefined) return readWhole(model.faults, pathOf(model, key), value, limits) ?? Number.NaN;
  const message = `is missing; expected a whole number of ${limits.unit}, at least ${limits.min}.`;
  model.faults.note('config-missing', pathOf(model, key), model.fields[key], message);
  return Number.NaN;
}

/** Reads a boolean that is false when it is left out. */
export function readFlag(model: ModelFields, key: string): boolean {
  const value = fieldOf(model, key);
  return value === undefined ? false : (readBoolean(model.faults, pathOf(model, key), value) ?? false);
}

/**
 * Reads one word a layer, each of which stands for a kind of layer.
 *
 * @param numLayers the length it must have; NaN when that is at fault itself, and the list then goes unread
 * @returns as many kinds as there are layers; empty when anything is at fault
 */
export function readLayerKinds<Kind>(
  model: ModelFields,
  key: string,
  numLayers: number,
  kinds: Readonly<Record<string, Kind>>,
): readonly Kind[] {
  const value = fieldOf(model, key);
  const path = pathOf(model, key);
  const wanted = 'expected an array with one word for each layer';
  if (value === undefined) {
    model.faults.note('config-missing', path, model.fields[key], `is missing; ${wanted}.`);
    return [];
  }
  if (!Array.isArray(value)) {
    model.faults.note('config-wrong-type', path, value, `${wanted}, got ${describe(value)}.`);
    return [];
  }
  const { length } = value;
  if (length > numLayers || length < numLayers) {
    const message = `${wanted}: the model has ${numLayers} layers, the array ${length} elements.`;
    model.faults.note('preset-list-length', path, length, message);
    return [];
  }
  if (Number.isNaN(numLayers)) return [];
  const words = Object.keys(kinds);
  const before = model.faults.count;
  const read: Kind[] = [];
  for (let index = 0; index < length; index++) {
    const word = readChoice(model.faults, `${path}[${index}]`, value[index], words);
    if (word !== undefined) read.push(kinds[word]);
  }
  return model.faults.count > before ? [] : read;
}

/** Notes that `value` at `key` is not a multiple of `divisor`. */
export function checkMultiple(model: ModelFields, key: string, value: number, divisor: number, divisorName: string): void {
  if (value % divisor > 0) {
    const message = `must be a multiple of ${divisorName}, ${divisor}, got ${value}.`;
    model.faults.note('preset-not-divisible', pathOf(model, key), value, message);
  }
}

/** Notes that a size which others determine is another than they say. */
export function checkEqual(model: ModelFields, key: string, value: number, expected: number, rule: string): void {
  if (value > expected || value < expected) {
    const message = `must be ${rule}, which is ${expected}, got ${value}.`;
    model.faults.note('preset-sizes-disagree', pathOf(model, key), value, message);
  }
}

/** Notes a model whose tokens see later ones: what it keeps of a prefix depends on what follows, so no prefix can be reused. */
export function checkCausal(model: ModelFields): void {
  const value = fieldOf(model, 'use_bidirectional_attention');
  if (value !== true) return;
  const message = 'tokens of this model see later ones, so nothing of a prefix can be reused. Run it without a cache.';
  model.faults.note('preset-not-causal', pathOf(model, 'use_bidirectional_attention'), value, message);
}
