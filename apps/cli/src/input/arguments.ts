import type { ParsedArgs } from 'citty';
import { UsageError } from '../cli-error.ts';
import type { Command } from '../command/command.ts';

/** Refuses what a command does not know; the parser itself would let it pass. */
export function refuseUnknown({ name: command, args }: Command, given: ParsedArgs): void {
  const names = new Set(['_', ...Object.keys(args).flatMap((name) => [name, camelCase(name)])]);
  const see = `see bufferwise ${command} --help`;
  for (const [name, value] of Object.entries<unknown>(given)) {
    if (!names.has(name) && !names.has(kebabCase(name))) throw new UsageError(`unknown flag --${name}; ${see}`);
    const option = args[name];
    if (option?.type === 'string' && value === '')
      throw new UsageError(`--${name} takes ${option.valueHint ?? 'a value'}; ${see}`);
  }
  const numOperands = Object.values(args).filter(({ type }) => type === 'positional').length;
  const extra = given._[numOperands];
  if (extra !== undefined) throw new UsageError(`unexpected argument ${JSON.stringify(extra)}; ${see}`);
}

/** A whole number given as text, within bounds. */
export function wholeNumber(name: string, text: string, { min, max }: { min: number; max: number }): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= min && value <= max) return value;
  throw new UsageError(`--${name} is ${JSON.stringify(text)}; it must be a whole number from ${min} to ${max}`);
}

/** Whole numbers between commas, at least one, ascending. */
export function wholeNumbers(name: string, text: string, { min, max }: { min: number; max: number }): number[] {
  const numbers = text.split(',').map((each) => wholeNumber(name, each.trim(), { min, max }));
  return [...new Set(numbers)].sort((a, b) => a - b);
}

const UNITS: Readonly<Record<string, number>> = { b: 0, kib: 1, k: 1, mib: 2, m: 2, gib: 3, g: 3, tib: 4, t: 4 };
const DECIMAL: Readonly<Record<string, number>> = { kb: 1e3, mb: 1e6, gb: 1e9, tb: 1e12 };
const MAX_BYTES = 2 ** 50;

/** Bytes given as `8GiB`, `512 MiB`, `1.5g`, `8GB` (decimal) or a plain number. */
export function byteSize(name: string, text: string): number {
  const [, digits, unit] = /^\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*$/i.exec(text) ?? [];
  const key = (unit || 'b').toLowerCase();
  const factor = UNITS[key] === undefined ? DECIMAL[key] : 2 ** (10 * UNITS[key]);
  const bytes = Math.round(Number(digits) * factor);
  if (bytes >= 1 && bytes <= MAX_BYTES) return bytes;
  throw new UsageError(`--${name} is ${JSON.stringify(text)}; write bytes as 8GiB, 512MiB or a number, up to 1024TiB`);
}

const MILLISECONDS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** Milliseconds given as `500ms`, `30s`, `1.5m`, `1h`, or as a plain number of seconds; at least 1. */
export function duration(name: string, text: string, { max }: { max: number }): number {
  const [, digits, unit] = /^\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h)?\s*$/.exec(text) ?? [];
  const milliseconds = Math.round(Number(digits) * MILLISECONDS[unit ?? 's']);
  if (milliseconds >= 1 && milliseconds <= max) return milliseconds;
  throw new UsageError(`--${name} is ${JSON.stringify(text)}; write a time as 30s, 500ms, 2m or a number of seconds`);
}

function camelCase(name: string): string {
  return name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}

function kebabCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
