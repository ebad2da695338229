import type { FaultSink } from './fault-log.ts';

/*
 * The first look at a value from outside. A reader hands back a copy it has read once, or notes a fault and hands back
 * undefined; what comes out of here can be trusted to be what its type says.
 */

/** Own enumerable properties of an input object. Inherited ones do not count. */
export type Fields = Readonly<Record<string, unknown>>;

/** Inclusive limits of a whole number, and its unit for the message. */
export interface WholeLimits {
  min: number;
  /** Default 2^53 - 1. */
  max?: number;
  unit: string;
}

/** Copies an input object's own properties, each read once. */
export function readFields(faults: FaultSink, path: string, value: unknown): Fields | undefined {
  if (value === undefined) return faults.note('config-missing', path, value, 'is missing; expected an object.');
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return faults.note('config-wrong-type', path, value, `expected an object, got ${describe(value)}.`);
  }
  return Object.assign(Object.create(null), value);
}

/** Notes every property that does not belong. */
export function refuseUnknownKeys(
  faults: FaultSink,
  path: string,
  fields: Fields,
  known: readonly string[],
  owner: string,
): void {
  for (const key of Object.keys(fields)) {
    if (known.includes(key)) continue;
    const message = `${owner} has no such field. Remove it, or correct the name; the fields are ${known.join(', ')}.`;
    faults.note('config-unknown-key', join(path, key), fields[key], message);
  }
}

/** Reads every element of an input array with `readElement`; undefined when it is no array or any element is at fault. */
export function readList<T>(
  faults: FaultSink,
  path: string,
  value: unknown,
  readElement: (value: unknown, path: string, index: number) => T | undefined,
): readonly T[] | undefined {
  if (value === undefined) return faults.note('config-missing', path, value, 'is missing; expected an array.');
  if (!Array.isArray(value)) return faults.note('config-wrong-type', path, value, `expected an array, got ${describe(value)}.`);
  const before = faults.count;
  const elements: T[] = [];
  const length = value.length;
  for (let index = 0; index < length; index++) {
    const element = readElement(value[index], `${path}[${index}]`, index);
    if (element !== undefined) elements.push(element);
  }
  return faults.count === before ? Object.freeze(elements) : undefined;
}

/** Reads a whole number within limits. */
export function readWhole(faults: FaultSink, path: string, value: unknown, limits: WholeLimits): number | undefined {
  const wanted = `expected a whole number of ${limits.unit}, at least ${limits.min}`;
  const number = readNumber(faults, path, value, wanted);
  if (number === undefined) return undefined;
  if (!Number.isInteger(number)) return faults.note('config-not-whole', path, number, `${wanted}, got ${number}.`);
  if (number < limits.min) return faults.note('config-out-of-range', path, number, `${wanted}, got ${number}.`);
  const max = limits.max ?? Number.MAX_SAFE_INTEGER;
  if (number > max) return faults.note('config-out-of-range', path, number, `${wanted} and at most ${max}, got ${number}.`);
  return number + 0; // turns -0 into 0
}

/** Reads a number, whole or not, NaN and infinities included; `wanted` begins the message of a fault. */
export function readNumber(faults: FaultSink, path: string, value: unknown, wanted: string): number | undefined {
  if (value === undefined) return faults.note('config-missing', path, value, `is missing; ${wanted}.`);
  if (typeof value !== 'number') return faults.note('config-wrong-type', path, value, `${wanted}, got ${describe(value)}.`);
  return value;
}

/** Reads a boolean. */
export function readBoolean(faults: FaultSink, path: string, value: unknown): boolean | undefined {
  if (typeof value === 'boolean') return value;
  return faults.note('config-wrong-type', path, value, `expected true or false, got ${describe(value)}.`);
}

/** Reads a string with at least one character; `what` names it in the message. */
export function readName(faults: FaultSink, path: string, value: unknown, what: string): string | undefined {
  if (value === undefined) return faults.note('config-missing', path, value, `is missing; expected ${what}, a string.`);
  if (typeof value !== 'string') {
    return faults.note('config-wrong-type', path, value, `expected ${what}, a string, got ${describe(value)}.`);
  }
  if (value === '') return faults.note('config-empty-name', path, value, `expected ${what}, got an empty string.`);
  return value;
}

/** Reads one of a few strings. */
export function readChoice<T extends string>(
  faults: FaultSink,
  path: string,
  value: unknown,
  choices: readonly T[],
): T | undefined {
  const wanted = `expected one of ${choices.map((choice) => JSON.stringify(choice)).join(', ')}`;
  if (value === undefined) return faults.note('config-missing', path, value, `is missing; ${wanted}.`);
  if (typeof value !== 'string') return faults.note('config-wrong-type', path, value, `${wanted}, got ${describe(value)}.`);
  const choice = choices.find((candidate) => candidate === value);
  return choice ?? faults.note('config-unknown-value', path, value, `${wanted}, got ${describe(value)}.`);
}

/** `read` for a field that may be left out: undefined when it is, or when it is at fault. */
export function readOptional<T>(value: unknown, read: (value: unknown) => T | undefined): T | undefined {
  return value === undefined ? undefined : read(value);
}

/** The value of a field that may be left out. Null is a value. */
export function orDefault(value: unknown, fallback: unknown): unknown {
  return value === undefined ? fallback : value;
}

/** The path of a property, as one would write it in code; the input itself has the empty path. */
export function join(path: string, key: string): string {
  if (!/^[A-Za-z_$][\w$]*$/.test(key)) return `${path}[${JSON.stringify(key)}]`;
  return path === '' ? key : `${path}.${key}`;
}

/** A value in a few words, for messages. */
export function describe(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value);
    case 'bigint':
      return `the bigint ${value}`;
    case 'number':
    case 'boolean':
    case 'undefined':
      return String(value);
    case 'symbol':
      return 'a symbol';
    default:
      return typeof value === 'function' ? 'a function' : 'an object';
  }
}
