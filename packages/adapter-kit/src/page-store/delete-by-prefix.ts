import type { CallOptions } from '../plugin.ts';
import type { PageStore } from './page-store.ts';

/** Deletes all pages whose keys begin with one of some prefixes. False, with nothing changed, when the store cannot list its pages. */
export async function deleteByPrefix(store: PageStore, prefixes: readonly string[], options: CallOptions = {}): Promise<boolean> {
  if (store.list === undefined) return false;
  let cursor: string | undefined;
  do {
    const piece = await store.list({ ...options, cursor });
    const keys = piece.keys.filter(({ key }) => prefixes.some((prefix) => key.startsWith(prefix)));
    if (keys.length > 0) await store.delete(keys, options);
    cursor = piece.cursor ?? undefined;
  } while (cursor !== undefined);
  return true;
}
