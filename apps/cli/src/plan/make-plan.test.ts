import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { EXAMPLE_MODELS } from './example-models.ts';
import { makePlan, type PlanOptions } from './make-plan.ts';

const MIB = 2 ** 20;
const GIB = 2 ** 30;

/** Blocks of 32 tokens, 2-byte keys, values and convolution inputs, 4-byte states. */
const planOf = (name: string, options: Partial<PlanOptions> = {}, variant: 'whole' | 'split' = 'whole') =>
  makePlan(
    { name, config: EXAMPLE_MODELS[name] },
    {
      preset: { variant, tokensPerBlock: 32 },
      memory: 8 * GIB,
      lengths: [1024, 8192],
      typicalLength: 8192,
      prefillChunk: 2048,
      scratch: false,
      ...options,
    },
  );

/** Bytes of a token while windows still reach back, and of one more behind them; bytes of windows and states at most. */
const totalsOf = (name: string) => {
  const { bytesPerToken, bytesPerLateToken, maxFixedBytes, requests } = planOf(name).explanation.totals;
  return {
    token: bytesPerToken.num / bytesPerToken.den,
    lateToken: bytesPerLateToken.num / bytesPerLateToken.den,
    fixed: maxFixedBytes,
    requests: requests.map(({ bytes }) => bytes),
  };
};

/** The most blocks of 32 tokens that a window of `window` tokens touches: those before the newest token, and its own. */
const blocksOf = (window: number) => Math.ceil((window - 1) / 32) + 1;

describe('the bytes of known models', () => {
  it('Llama-3.1-8B: 32 layers of 8 heads, 128 wide', () => {
    // key and value × 32 layers × 8 × 128 values × 2 bytes
    const token = 2 * 32 * 8 * 128 * 2;
    expect(token).toBe(128 * 1024);
    expect(totalsOf('llama-3.1-8b')).toEqual({ token, lateToken: token, fixed: 0, requests: [1024 * token, 8192 * token] });
    // 8 GiB are 2,048 blocks of 32 such tokens, and 97 % of them may be in use when a request begins: 1,986 = 62 × 32 + 2 = 7 × 256 + 194
    expect(planOf('llama-3.1-8b').variants[0].numFitting).toEqual([62, 7]);
  });

  it('Qwen3-8B: 36 layers of 8 heads, 128 wide', () => {
    const token = 2 * 36 * 8 * 128 * 2;
    expect(totalsOf('qwen3-8b')).toEqual({ token, lateToken: token, fixed: 0, requests: [1024 * token, 8192 * token] });
  });

  it('Mistral-7B-v0.1: the last 4,096 tokens of 32 layers', () => {
    const token = 2 * 32 * 8 * 128 * 2;
    const fixed = blocksOf(4096) * 32 * token;
    expect(blocksOf(4096)).toBe(129);
    expect(totalsOf('mistral-7b-v0.1')).toMatchObject({ token, lateToken: 0, fixed });
    // token 8,192 ends a block: the window begins at token 4,096, so 128 blocks
    expect(totalsOf('mistral-7b-v0.1').requests).toEqual([1024 * token, 4096 * token]);
  });

  it('Phi-3-mini-4k: the last 2,047 tokens of 32 layers of 32 heads, 96 wide', () => {
    const token = 2 * 32 * 32 * 96 * 2;
    const fixed = blocksOf(2047) * 32 * token;
    expect(blocksOf(2047)).toBe(65);
    // At token 8,192 the window begins in block floor((8192 - 2047) / 32) = 192, and 256 - 192 = 64 blocks of 32 tokens are live
    expect(totalsOf('phi-3-mini-4k')).toEqual({
      token,
      lateToken: 0,
      fixed,
      requests: [1024 * token, 64 * 32 * token],
    });
  });

  it('Gemma-2-9b: 21 windows of 4,096 and 21 layers without, of 8 heads, 256 wide', () => {
    const half = 2 * 21 * 8 * 256 * 2;
    expect(totalsOf('gemma-2-9b')).toEqual({
      token: 2 * half,
      lateToken: half,
      fixed: 129 * 32 * half,
      requests: [1024 * 2 * half, 4096 * half + 8192 * half],
    });
  });

  it('Gemma-3-4b: 29 windows of 1,024 and 5 layers without, of 4 heads, 256 wide', () => {
    const layer = 2 * 4 * 256 * 2;
    expect(totalsOf('gemma-3-4b')).toEqual({
      token: 34 * layer,
      lateToken: 5 * layer,
      fixed: blocksOf(1024) * 32 * 29 * layer,
      requests: [1024 * 34 * layer, 1024 * 29 * layer + 8192 * 5 * layer],
    });
  });

  it('gpt-oss-20b: 12 windows of 128 and 12 layers without, of 8 heads, 64 wide', () => {
    const half = 2 * 12 * 8 * 64 * 2;
    expect(totalsOf('gpt-oss-20b')).toEqual({
      token: 2 * half,
      lateToken: half,
      fixed: blocksOf(128) * 32 * half,
      requests: [128 * half + 1024 * half, 128 * half + 8192 * half],
    });
  });

  it('Jamba-v0.1: Mamba-1 in 28 layers, attention in 4', () => {
    const token = 2 * 4 * 8 * 128 * 2;
    // 2 × 4,096 channels: × 16 values of state × 4 bytes, and 3 rows of convolution × 2 bytes
    const state = 28 * (8192 * 16 * 4 + 3 * 8192 * 2);
    expect(totalsOf('jamba-v0.1')).toEqual({
      token,
      lateToken: token,
      fixed: state,
      requests: [1024 * token + state, 8192 * token + state],
    });
  });

  it('Nemotron-H-8B: 24 layers of Mamba-2, 4 of attention', () => {
    const token = 2 * 4 * 8 * 128 * 2;
    // 128 heads × 64 × 128 × 4 bytes; 3 rows × (128 × 64 + 2 × 8 groups × 128) × 2 bytes
    const state = 24 * (128 * 64 * 128 * 4 + 3 * (8192 + 2 * 8 * 128) * 2);
    expect(totalsOf('nemotron-h-8b')).toEqual({
      token,
      lateToken: token,
      fixed: state,
      requests: [1024 * token + state, 8192 * token + state],
    });
  });

  it('Granite-4.0-H-Small: 36 layers of Mamba-2, 4 of attention', () => {
    const token = 2 * 4 * 8 * 128 * 2;
    // one group: 3 rows × (8,192 + 2 × 128)
    const state = 36 * (128 * 64 * 128 * 4 + 3 * (8192 + 2 * 128) * 2);
    expect(totalsOf('granite-4.0-h-small')).toEqual({
      token,
      lateToken: token,
      fixed: state,
      requests: [1024 * token + state, 8192 * token + state],
    });
  });

  it('Qwen3-Next-80B-A3B: 36 gated delta nets, 12 layers of attention of 2 heads, 256 wide', () => {
    const token = 2 * 12 * 2 * 256 * 2;
    // 32 heads × 128 × 128 × 4 bytes; 3 rows × (2 × 16 × 128 + 32 × 128) × 2 bytes
    const state = 36 * (32 * 128 * 128 * 4 + 3 * (2 * 16 * 128 + 32 * 128) * 2);
    expect(totalsOf('qwen3-next-80b-a3b')).toEqual({
      token,
      lateToken: token,
      fixed: state,
      requests: [1024 * token + state, 8192 * token + state],
    });
  });

  it('Falcon-H1-7B: attention and Mamba-2 beside each other in 44 layers', () => {
    const token = 2 * 44 * 2 * 128 * 2;
    // 24 heads × 128 × 256 × 4 bytes; 3 rows × (3,072 + 2 × 256) × 2 bytes
    const state = 44 * (24 * 128 * 256 * 4 + 3 * (3072 + 2 * 256) * 2);
    expect(totalsOf('falcon-h1-7b')).toEqual({
      token,
      lateToken: token,
      fixed: state,
      requests: [1024 * token + state, 8192 * token + state],
    });
  });

  it('Mamba2-2.7b: state alone, 64 layers of 80 heads', () => {
    // 80 × 64 × 128 × 4 bytes; 3 rows × (5,120 + 2 × 128) × 2 bytes
    const state = 64 * (80 * 64 * 128 * 4 + 3 * (5120 + 2 * 128) * 2);
    expect(totalsOf('mamba2-2.7b')).toEqual({ token: 0, lateToken: 0, fixed: state, requests: [state, state] });
  });

  it('DeepSeek-V3: one latent row of 512 + 64 values a layer', () => {
    const token = 61 * (512 + 64) * 2;
    expect(totalsOf('deepseek-v3')).toEqual({ token, lateToken: token, fixed: 0, requests: [1024 * token, 8192 * token] });
  });
});

describe('the bytes of a sparse indexer', () => {
  it('DeepSeek-V3.2: as V3, and 128 index keys of a byte with a scale of 4 in each layer', () => {
    const token = 61 * ((512 + 64) * 2 + 128 + 4);
    expect(totalsOf('deepseek-v3.2')).toEqual({ token, lateToken: token, fixed: 0, requests: [1024 * token, 8192 * token] });
  });

  it('leaves no example without arithmetic of its own', () => {
    const source = readFileSync(new URL(import.meta.url), 'utf8');
    const untold = Object.keys(EXAMPLE_MODELS).filter((name) => !source.includes(`totalsOf('${name}')`));
    expect(untold).toEqual([]);
  });
});

describe('what a split variant buys', () => {
  it('frees the windows of Gemma-3-4b from every match, and says what it takes to have them again', () => {
    const layer = 2 * 4 * 256 * 2;
    const { variants, split, preset } = planOf('gemma-3-4b');
    expect(preset.variant).toBe('whole');
    expect(variants.map(({ bytesPerToken }) => bytesPerToken)).toEqual([
      { required: 34 * layer, optional: 0, private: 0 },
      { required: 5 * layer, optional: 29 * layer, private: 0 },
    ]);
    expect(split.savings).toHaveLength(1);
    expect(split.savings[0]).toMatchObject({
      buffers: 'windowed-attention',
      bytesPerToken: 29 * layer,
      rewrittenTokens: 1023 + 31,
    });
    expect(split.notes).toEqual([expect.stringMatching(/where a match ends with a block/)]);
  });

  it('keeps the replay ring of Granite out of snapshots', () => {
    const { variants, split } = planOf('granite-4.0-h-small', {}, 'split');
    const [whole, parted] = variants;
    expect(parted.bytesPerSequence.required).toBe(whole.bytesPerSequence.required);
    expect(parted.bytesPerSequence.private).toBeGreaterThan(0);
    expect(split.savings).toMatchObject([{ buffers: 'replay-ring', policy: 'private' }]);
  });

  it('is nothing for full attention, which it says', () => {
    const { variants, split } = planOf('llama-3.1-8b');
    expect(variants[0]).toEqual({ ...variants[1], variant: 'whole' });
    expect(split.savings).toEqual([]);
    expect(split.notes).toEqual([expect.stringMatching(/^Nothing is split/)]);
  });
});

describe('warnings', () => {
  it('name a request that does not fit, and a pool that a device does not bind by default', () => {
    const { warnings } = planOf('llama-3.1-8b', { memory: 256 * MIB, lengths: [1024, 8192] });
    expect(warnings).toEqual([
      'A request of 8,192 tokens does not fit: it takes 1 GiB.',
      expect.stringContaining('The largest pool has 256 MiB, and a WebGPU device binds 128 MiB at once'),
    ]);
  });

  it('tell of memory that was raised', () => {
    expect(planOf('mistral-7b-v0.1', { memory: MIB }).warnings[0]).toMatch(/^The memory is too small for one request/);
  });

  it('are none where nothing is wrong', () => {
    expect(planOf('gpt-oss-20b', { memory: 64 * MIB, lengths: [512], typicalLength: 512 }).warnings).toEqual([]);
  });
});

describe('scratch', () => {
  it('saves the pages of blocks that leave the window within a step', () => {
    const [windowed] = planOf('gpt-oss-20b', { scratch: true }).explanation.groups;
    // 64 blocks; a window of 128 leaves 4 live at the end of token 2,048, so 60 are scratch: each layer runs alone in 1/12 of a slot
    const pageBytes = 12 * 2 * 8 * 64 * 2 * 32;
    expect(windowed.scratch?.chunks[0]).toEqual({
      tokens: 2048,
      pages: 64,
      scratchBlocks: 60,
      scratchSlots: 5,
      slots: 9,
      bytesSaved: 55 * pageBytes,
    });
  });
});
