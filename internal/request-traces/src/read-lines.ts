import { gunzipSync } from 'node:zlib';
import { TraceError } from './trace-error.ts';

/**
 * The text of a trace's file, which may be compressed with gzip.
 *
 * @throws {TraceError} when it only looks so
 */
export function traceText(file: Uint8Array): string {
  if (file[0] !== 0x1f || file[1] !== 0x8b) return new TextDecoder().decode(file);
  try {
    return new TextDecoder().decode(gunzipSync(file));
  } catch (cause) {
    throw new TraceError(`the file is damaged: ${(cause as Error).message}`, { cause });
  }
}

/**
 * One object a line; empty lines are skipped.
 *
 * @throws {TraceError} with the number of a line that is none
 */
export function parseLines(text: string): TraceLine[] {
  return text.split('\n').flatMap((line, index) => (line.trim() === '' ? [] : [new TraceLine(line, index + 1)]));
}

/** The fields of one line, checked as they are read. */
export class TraceLine {
  readonly #fields: Readonly<Record<string, unknown>>;
  readonly #number: number;

  /** @param number of the line, from 1 */
  constructor(text: string, number: number) {
    this.#number = number;
    let parsed: unknown;
    try {
      parsed = JSON.parse(text);
    } catch (cause) {
      throw new TraceError(`line ${number} is not JSON`, { cause });
    }
    if (typeof parsed !== 'object' || parsed === null) throw new TraceError(`line ${number} is no JSON object`);
    this.#fields = parsed as Record<string, unknown>;
  }

  /** A count of tokens; what a line leaves out may have a default. */
  count(name: string, fallback?: number): number {
    const value = this.#fields[name] ?? fallback;
    if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
    throw this.fault(name, 'must be a whole number from 0 on');
  }

  /** Ids of tokens or of blocks. */
  ids(name: string): readonly number[] {
    const value = this.#fields[name];
    if (Array.isArray(value) && value.every((id) => Number.isSafeInteger(id) && id >= 0)) return value;
    throw this.fault(name, 'must be a list of ids');
  }

  text(name: string): string {
    const value = this.#fields[name];
    if (typeof value === 'string') return value;
    throw this.fault(name, 'must be a text');
  }

  has(name: string): boolean {
    return this.#fields[name] !== undefined;
  }

  /** Objects inside this one. */
  list(name: string): TraceLine[] {
    const value = this.#fields[name];
    if (!Array.isArray(value)) throw this.fault(name, 'must be a list');
    return value.map((each) => new TraceLine(JSON.stringify(each), this.#number));
  }

  fault(name: string, why: string): TraceError {
    return new TraceError(`line ${this.#number}: "${name}" ${why}`);
  }
}
