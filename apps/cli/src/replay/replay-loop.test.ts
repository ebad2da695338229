import type { TraceRequest } from '@bufferwise-internal/request-traces';
import { describe, expect, it } from 'vitest';
import { replayTrace } from './replay-loop.ts';
import { changedFlags, readSettings, SETTING_DEFAULTS, type SettingFlags } from './replay-settings.ts';

/** Tokens from `first` on; with 1 KiB a token, 2 MiB hold 2,048 of them. */
function request(first: number, promptLength: number, outputLength = 1): TraceRequest {
  return {
    promptLength,
    outputLength,
    prompt: () => Uint32Array.from({ length: promptLength }, (_, i) => first + i),
    outputToken: (index) => 1_000_000 + first + index,
  };
}

const run = { signal: new AbortController().signal, progress: () => {} };

async function replayed(requests: readonly TraceRequest[], flags: Partial<SettingFlags> = {}) {
  return replayTrace(requests, await readSettings({ ...SETTING_DEFAULTS, memory: '2MiB', running: '1', ...flags }), run);
}

describe('a replay', () => {
  it('finds what earlier requests left, up to the last token', async () => {
    const result = await replayed([request(0, 512), request(0, 512), request(0, 700)]);
    // nothing; all but the last token; the 512 of before
    expect(result).toMatchObject({ requests: 3, promptTokens: 512 + 512 + 700, hitTokens: 0 + 511 + 512, outputTokens: 3 });
    expect(result.groups[0]).toMatchObject({ evictedPages: 0, reusedPages: 32 + 32, offloadedBytes: 0 });
  });

  it('evicts when memory runs out, and then finds less', async () => {
    const round = [request(0, 900), request(10_000, 900), request(20_000, 900)];
    const small = await replayed([...round, ...round], { eviction: 'lru' });
    const large = await replayed([...round, ...round], { eviction: 'lru', memory: '8MiB' });
    expect(large.hitTokens).toBe(3 * 899);
    expect(large.groups[0].evictedPages).toBe(0);
    expect(small.hitTokens).toBeLessThan(large.hitTokens);
    expect(small.groups[0].evictedPages).toBeGreaterThan(0);
  });

  it('moves pages to the host and back where there is one', async () => {
    const round = [request(0, 900), request(10_000, 900), request(20_000, 900)];
    const { groups, hitTokens } = await replayed([...round, ...round], { host: '8MiB', eviction: 'lru' });
    expect(groups[0].offloadedBytes).toBeGreaterThan(0);
    expect(groups[0].onboardedBytes).toBeGreaterThan(0);
    expect(hitTokens).toBe(3 * 899);
  });

  it('leaves out what never fits, and cuts answers that outgrow all memory', async () => {
    const result = await replayed([request(0, 4096), request(50_000, 2000, 400), request(90_000, 100)]);
    expect(result).toMatchObject({ skipped: 1, truncated: 1, requests: 2 });
  });

  it('makes way for earlier requests, and still answers everything', async () => {
    const requests = [request(0, 800, 300), request(10_000, 800, 300), request(20_000, 300, 300)];
    const result = await replayed(requests, { running: '3' });
    expect(result.preemptions).toBeGreaterThan(0);
    expect(result).toMatchObject({ requests: 3, truncated: 0, skipped: 0, promptTokens: 1900 });
  });

  it('counts optional groups only where they are complete and selected', async () => {
    const mixed = { mix: 'full+window:64', policies: 'window_kv=optional', memory: '8MiB' };
    const aligned = await replayed([request(0, 512), request(0, 513)], mixed);
    expect(aligned).toMatchObject({ hitTokens: 512, rebuilds: 0 });
    // 511 tokens end inside a block, where the window is incomplete: it continues where the block begins, at 31 × 16
    const inside = await replayed([request(0, 512), request(0, 512)], mixed);
    expect(inside).toMatchObject({ hitTokens: 496, rebuilds: 0, recomputedTokens: 0, computedTokens: 512 + 16 });
    expect(inside.groups[1]).toMatchObject({ policy: 'optional', reusedPages: 4 });
  });

  it('runs again what a match lacks, and counts it', async () => {
    const mixed = { mix: 'full+window:64', policies: 'window_kv=private', memory: '8MiB' };
    const result = await replayed([request(0, 512), request(0, 512)], mixed);
    // At 511 the window begins in block floor((511 + 1 - 64) / 16) = 28, so tokens 448 to 510 are run again, and 511 for the first time.
    expect(result).toMatchObject({ hitTokens: 511, rebuilds: 1, recomputedTokens: 63, computedTokens: 512 + 63 + 1 });
    expect(result.savedRate).toBe(1 - 576 / 1024);
    // 32 blocks of full attention stay, of 16 KiB each, and nothing of the window.
    expect(result).toMatchObject({ keptTokens: 512, keptBytes: 512 * 1024 });
    expect(result.groups.map(({ keptBytes }) => keptBytes)).toEqual([512 * 1024, 0]);
  });

  it('sends what leaves the host to the disk, and brings it back', async () => {
    const round = Array.from({ length: 6 }, (_, i) => request(i * 10_000, 900));
    const result = await replayed([...round, ...round], { host: '2MiB', disk: '16MiB', eviction: 'lru' });
    expect(result.hitTokens).toBe(6 * 899);
    expect(result.disk?.writtenBytes).toBe((result.disk?.writes ?? 0) * 16 * 1024);
    expect(result.disk?.readBytes).toBe((result.disk?.reads ?? 0) * 16 * 1024);
    // 6 × 57 blocks were used, and device and host hold 256 of them.
    expect(result.disk?.writes).toBeGreaterThanOrEqual(6 * 57 - 256);
    expect(result.disk?.reads).toBeGreaterThan(0);
    expect(result.groups[0].droppedBytes).toBe(0);
    const without = await replayed([...round, ...round], { host: '2MiB', eviction: 'lru' });
    expect(without.disk).toBeNull();
    expect(without.hitTokens).toBeLessThan(result.hitTokens);
  });

  it('finds states where it left snapshots', async () => {
    const flags = { mix: 'full+state', memory: '64MiB', 'snapshot-every': '128' };
    const result = await replayed([request(0, 512), request(0, 300)], flags);
    // the second prompt shares 300 tokens, and the last snapshot before its end is at 256
    expect(result.hitTokens).toBe(256);
    expect(result.groups[1].kind).toBe('state');
  });

  it('takes samples that add up', async () => {
    const requests = Array.from({ length: 100 }, (_, i) => request((i % 10) * 1000, 64));
    const { samples, hitTokens, promptTokens } = await replayed(requests);
    expect(samples.length).toBeGreaterThan(20);
    expect(samples.reduce((sum, each) => sum + each.hitTokens, 0)).toBe(hitTokens);
    expect(samples.reduce((sum, each) => sum + each.promptTokens, 0)).toBe(promptTokens);
    expect(samples.at(-1)?.requests).toBe(100);
  });

  it('takes the layers of a model', async () => {
    const result = await replayed([request(0, 256), request(0, 256)], {
      model: 'gpt-oss-20b',
      variant: 'split',
      memory: '64MiB',
    });
    expect(result.groups.map(({ kind, policy }) => [kind, policy])).toEqual([
      ['window 128', 'optional'],
      ['full', 'required'],
    ]);
  });
});

describe('a second setting', () => {
  it('is the first one with changes', () => {
    const flags: SettingFlags = { ...SETTING_DEFAULTS, mix: 'full+window:64' };
    expect(changedFlags(flags, ' eviction=lru --policies=window_kv=optional,full_kv=required ')).toEqual({
      ...flags,
      eviction: 'lru',
      policies: 'window_kv=optional,full_kv=required',
    });
  });
});
