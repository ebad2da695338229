import type { ArgsDef } from 'citty';
import { CliError } from '../cli-error.ts';

/** Refuses what a command does not know; citty itself would let it pass. */
export function refuseUnknown(command: string, args: Readonly<Record<string, unknown>>, known: ArgsDef): void {
  const names = new Set(['_', ...Object.keys(known).flatMap((name) => [name, camelCase(name)])]);
  for (const name of Object.keys(args)) {
    if (names.has(name) || names.has(kebabCase(name))) continue;
    throw new CliError(`${command}: unknown flag --${name}; see bufferwise ${command} --help`);
  }
  const [extra] = args._ as string[];
  if (extra !== undefined)
    throw new CliError(`${command}: unexpected argument ${JSON.stringify(extra)}; see bufferwise ${command} --help`);
}

/** A whole number given as text, within bounds. */
export function wholeNumber(name: string, text: string, { min, max }: { min: number; max: number }): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= min && value <= max) return value;
  throw new CliError(`--${name} is ${JSON.stringify(text)}; it must be a whole number from ${min} to ${max}`);
}

function camelCase(name: string): string {
  return name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}

function kebabCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
