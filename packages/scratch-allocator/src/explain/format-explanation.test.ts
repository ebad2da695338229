import { type CacheConfigInput, defineCacheConfig, type LayerConfig } from '@bufferwise/core-policy';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anyConfig } from '../../test/any-config.ts';
import { type ExplainOptions, explain } from './explain.ts';
import { formatExplanation } from './format-explanation.ts';

const MIB = 2 ** 20;

function textOf(layers: LayerConfig[], options: ExplainOptions, more: Partial<CacheConfigInput> = {}, width?: number): string {
  const config = defineCacheConfig({ tokensPerBlock: 64, layers, tiers: [{ tier: 'device', quota: 64 * MIB }], ...more });
  return formatExplanation(explain(config, options), { width });
}

const keysAndValues = ['key', 'value'].map((role) => ({ role, size: 8192 }));
const full = (layerId: number): LayerConfig => ({ type: 'attention', layerId, buffers: keysAndValues });
const window = (layerId: number): LayerConfig => ({ ...full(layerId), slidingWindowSize: 128 }) as LayerConfig;

describe('formatExplanation', () => {
  it('shows a model with five windows to each full layer as two groups with their layers', () => {
    const layers = Array.from({ length: 12 }, (_, layerId) => (layerId % 6 === 5 ? full(layerId) : window(layerId)));
    const text = textOf(layers, { lengths: [1024, 8192], prefillChunks: [64, 2048] }, { swaScratchReuse: { maxRewindLen: 64 } });
    expect(text).toBe(
      `
12 layers, 24 buffers, 2 groups; 64 tokens a block
A token takes 3 KiB, 512 B once every window is full. Windows and recurrent state take at most
480 KiB a request.

Group 0, required: attention to the last 128 tokens
  roles       a page  tokens a page  pages a block  pool  layers
  key, value   8 KiB             64              1     0  0-4, 6-10
  page     160 KiB: 20 × 8 KiB in pool 0; 2.5 KiB a token
  request  at most 3 pages, 480 KiB
  scratch  1/10 of a slot a block, but for the last 64 tokens; 64 tokens in one step take 1 page
           either way; 2,048 tokens in one step take 6 slots instead of 32 and save 4.06 MiB

Group 1, required: attention to every token
  roles       a page  tokens a page  pages a block  pool  layers
  key, value   8 KiB             64              1     0  5, 11
  page     32 KiB: 4 × 8 KiB in pool 0; 512 B a token
  request  grows with its length

What a request holds by its length in tokens, and how many such requests fit on the device at a time
  tokens      1,024     8,192
  group 0   320 KiB   320 KiB
  group 1   512 KiB     4 MiB
  together  832 KiB  4.31 MiB
  fit            62         7

Slots of each tier
  tier     a slot  slots  at least   together  policy    groups
  device  160 KiB    204         3  31.88 MiB  required  0
  device   32 KiB  1,024         3     32 MiB  required  1
  device   64 MiB, in steps of 2 MiB`.trimStart(),
    );
  });

  it('tells that scratch is off and what it would save', () => {
    expect(textOf([window(0)], { prefillChunks: [256] })).toContain(
      '  scratch  off; with it, a slot a block; 256 tokens in one step take 4 pages either way',
    );
    expect(textOf([window(0), window(1)], { prefillChunks: [256] }, {}, 120)).toContain(
      '  scratch  off; with it, 1/2 of a slot a block; 256 tokens in one step take 3 slots instead of 4 and save 32 KiB',
    );
  });

  it('tells when a quota was raised, rounded or taken as it is', () => {
    const quotas = (device: number) =>
      textOf([full(0)], {}, { tiers: [{ tier: 'device', quota: device }] })
        .split('\n')
        .at(-1);
    expect(quotas(4 * MIB)).toBe('  device   4 MiB, in steps of 2 MiB');
    expect(quotas(4 * MIB + 1)).toBe('  device   4 MiB asked for, rounded up to 6 MiB; in steps of 2 MiB');
    const constraints = [{ kvCaches: [{ capacity: 64 * 1024, historyLength: 0 }] }];
    const small = { tiers: [{ tier: 'device', quota: 4 * MIB }], constraints, maxUtilForResume: 1 } as const;
    const raised = textOf([full(0)], {}, small);
    expect(raised).toContain('4 MiB asked for, raised to 16 MiB for the slots under "at least"; in steps of 2 MiB');
  });

  it('says what is shared, and leaves out what nobody asked for', () => {
    const shared = textOf([full(0)], { lengths: [1024], systemPromptLength: 960 }, {}, 200);
    expect(shared).toContain('fit on the device at a time, which share their first 960 tokens\n');
    expect(textOf([full(0)], { lengths: [] })).not.toContain('What a request holds');
    expect(textOf([{ ...full(0), buffers: [] } as LayerConfig], { lengths: [8] })).toBe(
      `
0 layers, 0 buffers, 0 groups; 64 tokens a block
A token takes 0 B.

What a request holds by its length in tokens, and how many such requests fit on the device at a time
  tokens      8
  together  0 B
  fit       any

Slots of each tier
  device   64 MiB, in steps of 2 MiB`.trimStart(),
    );
  });

  it('gives layers that look alike one row, and those that do not their own', () => {
    const more = (layerId: number, size: number): LayerConfig => ({
      type: 'attention',
      layerId,
      buffers: [...keysAndValues, { role: 'index', size, tokensPerBlockOverride: 16 }],
    });
    const text = textOf([more(9, 128), more(3, 128), more(4, 256), full(5)], {});
    expect(text).toContain(
      `
  roles       a page  tokens a page  pages a block  pool  layers
  key, value   8 KiB             64              1     0  3-5, 9
  index        128 B             16              4     1  3, 9
  index        256 B             16              4     2  4
`,
    );
  });

  it('keeps to the width, has no colour codes and no blanks at line ends', () => {
    fc.assert(
      fc.property(anyConfig, fc.integer({ min: 60, max: 140 }), (config, width) => {
        const text = formatExplanation(explain(config, { lengths: [1, 1000, 10_000, 100_000, 1_000_000] }), { width });
        expect(text).not.toContain('\u001b');
        for (const line of text.split('\n')) {
          expect(line.length).toBeLessThanOrEqual(width);
          expect(line).toBe(line.trimEnd());
        }
      }),
    );
  });

  it('takes a width below 60 as 60, and 100 when none is given', () => {
    const layers = Array.from({ length: 40 }, (_, layerId) => (layerId % 3 === 2 ? full(layerId) : window(layerId)));
    expect(textOf(layers, {}, {}, 1)).toBe(textOf(layers, {}, {}, 60));
    expect(textOf(layers, {})).toBe(textOf(layers, {}, {}, 100));
    expect(textOf(layers, {}, {}, 60)).not.toBe(textOf(layers, {}));
  });
});
