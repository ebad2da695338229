import { expect } from 'vitest';
import type { StatedValue } from './stated-values.ts';

/** What examples call with a value and what the comment behind it states. Numbers in typed arrays are numbers. */
export function checkStated(actual: unknown, { value, partial }: StatedValue, place: string): void {
  const plain = ArrayBuffer.isView(actual) ? [...(actual as Uint8Array)] : actual;
  if (!partial) expect(plain, place).toEqual(value);
  else if (typeof value === 'string') expect(plain, place).toContain(value.trim());
  else expect(plain, place).toMatchObject(value as object);
}
