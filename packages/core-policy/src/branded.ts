import { BufferwiseError } from './errors/bufferwise-error.ts';

/**
 * A number (or string) that names one kind of thing. The key of the brand is a string, so two installed copies of this
 * package still agree on the type.
 */
export type Branded<T, Name extends string> = T & { readonly '~brand': Name };

/**
 * Makes the checked maker of an index type: the one way from a plain number to its brand.
 *
 * @param name what the index counts, for the message of the error
 * @returns a function that hands back its argument, branded. It throws a `BufferwiseError` with code `bad-index`
 *   when the argument is not a whole number >= 0
 * @example const slotId = checkedIndex<SlotId>('SlotId');
 */
export function checkedIndex<Index extends number>(name: string): (value: number) => Index {
  return (value) => {
    if (!Number.isSafeInteger(value) || value < 0) {
      throw new BufferwiseError('bad-index', `${name}: expected a whole number >= 0, got ${String(value)}.`);
    }
    return value as Index;
  };
}
