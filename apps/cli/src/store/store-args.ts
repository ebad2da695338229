import { byteSize } from '../input/arguments.ts';
import type { PageStoreChoice } from './open-page-store.ts';

/** `--store` and the flags beside it. */
export const STORE_ARGS = {
  store: {
    type: 'string',
    description:
      'Where prefixes are kept and found, also by the next process: a folder, redis://HOST:PORT (several between commas: a cluster), s3://BUCKET',
    valueHint: 'DIR|ADDRESS',
  },
  'store-memory': { type: 'string', description: 'Bytes that a folder may take', valueHint: 'SIZE', default: '1GiB' },
  'store-near': { type: 'string', description: 'Bytes of pages kept in memory before the store', valueHint: 'SIZE' },
} as const;

/** @throws {UsageError} on sizes that are none */
export function storeChoice(given: { readonly 'store-memory': string; readonly 'store-near'?: string }): PageStoreChoice {
  return {
    quotaBytes: byteSize('store-memory', given['store-memory']),
    ...(given['store-near'] !== undefined && { nearBytes: byteSize('store-near', given['store-near']) }),
    env: process.env,
  };
}
