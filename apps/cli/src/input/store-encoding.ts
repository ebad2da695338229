import type { PageEncoding } from '@bufferwise/adapter-connectors';
import { UsageError } from '../cli-error.ts';

/** How a command keeps pages in its store. */
export const STORE_ENCODING_ARGS = {
  'store-compress': { type: 'boolean', description: 'Compress pages in the store; changes no answer', default: false },
  'store-int8': {
    type: 'boolean',
    description: 'Keep keys and values in 8 bits in the store, compressed: answers may differ a little',
    default: false,
  },
} as const;

/**
 * The encoding that the flags ask for; undefined for pages as they are.
 *
 * @throws {UsageError} when there is no store that they could be for
 */
export function storeEncoding(given: {
  store?: string;
  'store-compress': boolean;
  'store-int8': boolean;
}): PageEncoding | undefined {
  const flag = (['store-int8', 'store-compress'] as const).find((name) => given[name]);
  if (flag === undefined) return undefined;
  if (given.store === undefined) throw new UsageError(`--${flag} is about a store; say which one with --store`);
  return { int8: given['store-int8'] };
}
