import type { LayerConfig } from '@bufferwise/core-policy';
import type { TraceRequest } from '@bufferwise-internal/request-traces';
import { describe, expect, it } from 'vitest';
import { makeAdvice } from './make-advice.ts';
import type { AdviceOptions } from './trials.ts';

const KIB = 1024;
const MIB = 2 ** 20;
const TOKENS_PER_BLOCK = 16;

/** A prompt of `first`, `first + 1`, …, and an answer of one token. */
function request(first: number, promptLength: number): TraceRequest {
  return {
    promptLength,
    outputLength: 1,
    prompt: () => Uint32Array.from({ length: promptLength }, (_, i) => first + i),
    outputToken: () => 1_000_000 + first,
  };
}

const attention = (layerId: number, bytesPerToken: number, slidingWindowSize?: number): LayerConfig => ({
  type: 'attention',
  layerId,
  buffers: [{ role: 'kv', size: bytesPerToken * TOKENS_PER_BLOCK }],
  ...(slidingWindowSize === undefined ? {} : { slidingWindowSize }),
});

const run = { signal: new AbortController().signal, progress: () => {} };

async function advised(requests: readonly TraceRequest[], layers: readonly LayerConfig[], options: Partial<AdviceOptions> = {}) {
  const advice = await makeAdvice(
    requests,
    { layers, tokensPerBlock: TOKENS_PER_BLOCK, memory: 64 * MIB, stepTokens: 2048, ...options },
    run,
  );
  const computed = Object.fromEntries(advice.choices.map(({ name, computedTokens }) => [name, computedTokens]));
  return { ...advice, computed, name: advice.choices[advice.best].name };
}

describe('policies for a trace', () => {
  it('leave everything required where all of it fits and is used again', async () => {
    // The same prompt of 1,024 tokens twice: the last token is always computed.
    const { computed, name, policies, against, reasons } = await advised(
      [request(0, 1024), request(0, 1024)],
      [attention(0, KIB, 33), attention(1, KIB)],
    );
    expect(computed).toEqual({
      // 1,023 match, and 1 is left
      'nothing (whole)': 1024 + 1,
      // An optional window is complete where a block ends: 63 × 16 = 1,008 match, and 16 are left
      'kv of window 33 optional': 1024 + 16,
      // At 1,023 the window of 33 begins in block floor((1023 + 1 - 33) / 16) = 61, at token 976: 47 are run again, and 1 is left
      'kv of window 33 private': 1024 + (1023 - 976) + 1,
      'kv of full attention optional': 1024 + 16,
      'kv of full attention private': 1024 + 1024,
    });
    expect(name).toBe('nothing (whole)');
    expect(policies).toBe('kv=required');
    expect(against).toEqual({ computedTokens: 0, keptBytes: 0, sharedBytesPerToken: 0 });
    expect(reasons).toEqual([
      'Window 33 required: the model computes with optional 15 tokens more, with private 47 tokens more.',
      'Full attention required: the model computes with optional 15 tokens more, with private 1,023 tokens more.',
    ]);
  });

  it('let windows go where their memory is for one prompt alone', async () => {
    // Memory comes in grains of 2 MiB, and each pool has one at least. Of 17 grains the window has 16 at most: 64 blocks of 512 KiB, as many
    // as a prompt of 1,023 tokens takes. So each of two prompts in turns pushes the window of the other out.
    const [a, b] = [request(0, 1023), request(10_000, 1023)];
    const { computed, name, policies, choices, reasons, warnings } = await advised(
      [a, b, a, b],
      [attention(0, 32 * KIB, 129), attention(1, 512)],
      { memory: 34 * MIB },
    );
    // With everything required neither finds anything.
    expect(computed['nothing (whole)']).toBe(4 * 1023);
    // At 1,022 the window of 129 begins in block floor((1022 + 1 - 129) / 16) = 55, at token 880. Full attention has room for all.
    const secondTime = 1022 - 880 + 1;
    expect(computed['kv of window 129 private']).toBe(2 * 1023 + 2 * secondTime);
    // The first prompt needs its window again, and leaves room for that of the second, which is complete at 1,008.
    expect(computed['kv of window 129 optional']).toBe(2 * 1023 + secondTime + (1023 - 1008));
    expect(name).toBe('kv of window 129 optional');
    expect(policies).toBe('kv=optional,1.kv=required');
    const won = 2 * 1023 - secondTime - 15;
    expect(choices[0].computedTokens - choices[1].computedTokens).toBe(won);
    expect(reasons[0]).toBe(
      `Kv of window 129 optional: the model computes 1,888 tokens less (${((100 * won) / 4092).toFixed(1)} % of all prompts).`,
    );
    expect(won).toBe(1888);
    expect(warnings).toEqual([]);
  });

  it('share nothing where no two prompts are alike', async () => {
    const { computed, name, against } = await advised(
      [request(0, 512), request(10_000, 512), request(20_000, 512)],
      [attention(0, KIB, 33), attention(1, 3 * KIB)],
    );
    expect(new Set(Object.values(computed))).toEqual(new Set([3 * 512]));
    expect(name).toBe('kv of window 33 private; kv of full attention private');
    expect(against).toMatchObject({ computedTokens: 0, sharedBytesPerToken: 4 * KIB });
  });

  it('keep replay rings out of snapshots, which nobody else can use', async () => {
    const state: LayerConfig = {
      type: 'ssm',
      layerId: 0,
      buffers: [
        { role: 'ssm_state', size: 64 * KIB },
        { role: 'replay_x', size: 32 * KIB },
      ],
    };
    const { computed, name, policies, snapshotEvery, against } = await advised(
      [request(0, 600), request(0, 600)],
      [state, attention(1, KIB)],
    );
    // A snapshot stands one token before the end.
    expect(computed['nothing (whole)']).toBe(600 + 1);
    expect(computed['replay_x private']).toBe(600 + 1);
    expect(computed['ssm_state private']).toBe(600 + 600);
    expect(name).toBe('replay_x private');
    expect(policies).toBe('ssm_state=required,replay_x=private,kv=required');
    // A snapshot, of 96 KiB, for every 1,024 tokens takes less than these.
    expect(snapshotEvery).toBe(1024);
    expect(against.sharedBytesPerToken).toBe((32 * KIB) / 1024);
  });
});

describe('choices between which a cache sees no difference', () => {
  it('are served once', async () => {
    const layer = attention(0, KIB);
    const buffers = ['key', 'value'].map((role) => ({ role, size: KIB * TOKENS_PER_BLOCK }));
    let served = 0;
    const requests = [request(0, 64)].map((each) => ({
      ...each,
      prompt: () => {
        served++;
        return each.prompt();
      },
    }));
    const { computed } = await advised(requests, [{ ...layer, buffers }]);
    // whole; both optional or private; key or value optional or private
    expect(Object.keys(computed)).toHaveLength(1 + 2 + 4);
    expect(served).toBe(1 + 2 + 2);
  });
});
