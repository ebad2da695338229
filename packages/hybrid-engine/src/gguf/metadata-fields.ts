import type { ModelFault } from '../model/model-error.ts';
import type { GgufMetadata, GgufValue } from './metadata.ts';

/** What a number may be. */
interface Limits {
  least: number;
  most: number;
  /** Used where the key is absent; without one it must be there. NaN where it comes from a faulty value. */
  fallback?: number;
}

/**
 * Takes the numbers of one architecture out of a file's metadata and notes what is wrong with them, one fault a key. A faulty
 * value reads as NaN, and NaN blames nobody else: the faults must be asked for before anything is used.
 */
export class MetadataFields {
  readonly faults: ModelFault[] = [];
  readonly #metadata: GgufMetadata;
  readonly #architecture: string;

  /** @param architecture what keys begin with: `llama` for `llama.block_count` */
  constructor(metadata: GgufMetadata, architecture: string) {
    this.#metadata = metadata;
    this.#architecture = architecture;
  }

  has(key: string): boolean {
    return this.#metadata.has(this.#path(key));
  }

  whole(key: string, limits: Limits): number {
    return this.#number(this.#path(key), this.#metadata.get(this.#path(key)), limits, true);
  }

  real(key: string, limits: Limits): number {
    return this.#number(this.#path(key), this.#metadata.get(this.#path(key)), limits, false);
  }

  /** One whole number for each layer; a single one stands for all. */
  wholePerLayer(key: string, numLayers: number, limits: Limits): readonly number[] {
    const value = this.#metadata.get(this.#path(key));
    if (!Array.isArray(value)) {
      const forAll = this.whole(key, limits);
      return Array.from({ length: numLayers }, () => forAll);
    }
    if (Math.abs(value.length - numLayers) > 0) {
      this.note('conflict', key, `has ${value.length} elements for ${numLayers} layers`);
      return Array.from({ length: numLayers }, () => Number.NaN);
    }
    return value.map((element, i) => this.#number(`${this.#path(key)}[${i}]`, element, limits, true));
  }

  flag(key: string, fallback: boolean): boolean {
    const value = this.#metadata.get(this.#path(key)) ?? fallback;
    if (typeof value === 'boolean') return value;
    this.note('type', key, `must be true or false, is ${shown(value)}`);
    return fallback;
  }

  text(key: string, fallback: string): string {
    const value = this.#metadata.get(this.#path(key)) ?? fallback;
    if (typeof value === 'string') return value;
    this.note('type', key, `must be a text, is ${shown(value)}`);
    return fallback;
  }

  /** Notes a feature that is on: the key is there and says more than 0. */
  refuse(key: string, what: string): void {
    const value = this.#metadata.get(this.#path(key));
    if (value !== undefined && value !== 0 && value !== false) this.note('unsupported', key, `is ${shown(value)}: ${what}`);
  }

  note(code: ModelFault['code'], key: string, message: string): void {
    this.#note(code, this.#path(key), message);
  }

  #note(code: ModelFault['code'], path: string, message: string): void {
    if (!this.faults.some((fault) => fault.path === path)) this.faults.push({ code, path, message });
  }

  #path(key: string): string {
    return `${this.#architecture}.${key}`;
  }

  #number(path: string, given: GgufValue | undefined, { least, most, fallback }: Limits, whole: boolean): number {
    const value = given ?? fallback;
    if (given === undefined && Number.isNaN(fallback)) return Number.NaN;
    if (value === undefined) this.#note('missing', path, 'is missing');
    else if (typeof value !== 'number' || !(whole ? Number.isSafeInteger(value) : Number.isFinite(value))) {
      this.#note('type', path, `must be a ${whole ? 'whole' : 'finite'} number, is ${shown(value)}`);
    } else if (value < least || value > most) {
      this.#note('range', path, `must be ${least} to ${most}, is ${value}`);
    } else return value;
    return Number.NaN;
  }
}

/** A value in a message: short, whatever it is. */
function shown(value: GgufValue): string {
  if (Array.isArray(value)) return `a list of ${value.length}`;
  return String(value).slice(0, 40);
}
