import type { CommitOptions, CreateKvCacheOptions, KvCacheManager } from '../../src/index.ts';

/** What one served request does besides computing its tokens. */
export interface ServeOptions extends Omit<CreateKvCacheOptions, 'tokens'> {
  /** Counts up to which it commits, ascending, the last one being all; default: all at once. */
  ends?: readonly number[];
  commit?: CommitOptions;
}

/** One request on a prompt from the beginning to the end. Returns how much of it was reused; -1 when there was no room. */
export async function serve(manager: KvCacheManager, tokens: readonly number[], options: ServeOptions = {}): Promise<number> {
  const { ends = [tokens.length], commit, ...rest } = options;
  const kv = manager.createKvCache({ ...rest, tokens: tokens.slice(0, -1) });
  if (!(await kv.resume())) {
    kv.close();
    return -1;
  }
  const matched = kv.numCommittedTokens;
  for (const end of ends) {
    if (end <= kv.numCommittedTokens) continue;
    if (!kv.resize(end, kv.historyLength)) {
      kv.close();
      return -1;
    }
    kv.commit(tokens.slice(kv.numCommittedTokens, end), commit);
  }
  kv.close();
  return matched;
}

/** Tokens that no other prompt of a test begins with, as long as ids differ. */
export function prompt(id: number, length: number): number[] {
  return Array.from({ length }, (_, i) => 1000 * id + i);
}
