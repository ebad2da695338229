import { KernelError } from '../../errors/kernel-error.ts';
import type { Binding } from '../../kernel/compute-step.ts';
import { spanOf } from '../../kernel/joined-binding.ts';

/** A run of 32-bit words in a buffer: weights, or a table of indices. */
export interface Words {
  buffer: Binding;
  /** Words from the start of the binding, default 0. */
  offsetWords?: number;
}

/**
 * Makes the index tables of a call one binding: a kernel reads more of them than a device binds buffers.
 *
 * @returns the binding, and the word in it where each table begins
 * @throws {KernelError} `kernel-layout` when they lie in several buffers
 */
export function joinTables<Name extends string>(
  label: string,
  tables: Readonly<Record<Name, Words>>,
): { tables: Binding; offsets: Readonly<Record<Name, number>> } {
  const names = Object.keys(tables) as Name[];
  const span = spanOf(names.map((name) => tables[name].buffer));
  if (!span) {
    throw new KernelError(
      'kernel-layout',
      label,
      `the tables ${names.join(', ')} lie in several buffers, but are read through one binding. Upload all of them in the step, or keep them in one buffer.`,
    );
  }
  const offsets = {} as Record<Name, number>;
  for (const [i, name] of names.entries()) offsets[name] = span.firstWords[i] + (tables[name].offsetWords ?? 0);
  return { tables: span.binding, offsets };
}
