import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { presetLayers } from '@bufferwise/core-policy';
import { readTrace, traceFolder } from '@bufferwise-internal/request-traces';
import { describe, expect, it } from 'vitest';
import { EXAMPLE_MODELS } from '../plan/example-models.ts';
import { makeAdvice } from './make-advice.ts';

const folder = traceFolder();
const TOKENS_PER_BLOCK = 16;
if (folder === undefined)
  console.info('Skipped: there are no published traces beside the repository; BUFFERWISE_TRACES names their folder.');

describe.skipIf(folder === undefined)('policies of gpt-oss-20b for sessions of an agent', () => {
  it('require what each step of a session goes on from', { timeout: 120_000 }, async () => {
    const { requests } = readTrace(readFileSync(join(folder as string, 'lmcache_agent_miniswe.jsonl.gz')));
    const served = requests.slice(0, 60);
    const { layers } = presetLayers(EXAMPLE_MODELS['gpt-oss-20b'], { tokensPerBlock: TOKENS_PER_BLOCK });
    const advice = await makeAdvice(
      served,
      { layers, tokensPerBlock: TOKENS_PER_BLOCK, memory: 4 * 2 ** 30, stepTokens: 2048 },
      { signal: new AbortController().signal, progress: () => {} },
    );
    const named = (name: string) => {
      const found = advice.choices.find((each) => each.name === name);
      if (found === undefined) throw new Error(`${name} was not tried`);
      return found;
    };
    const whole = named('nothing (whole)');
    const windowsPrivate = named('key and value of window 128 private');
    for (const { computedTokens, hitRate, recomputedTokens, unserved } of advice.choices) {
      expect(unserved).toBe(0);
      expect(computedTokens).toBe(Math.round((1 - hitRate) * advice.promptTokens) + recomputedTokens);
    }
    // Sessions go on where their last step ended: nine of ten tokens match.
    expect(whole.hitRate).toBeGreaterThan(0.85);
    // A private window is run again: 12 layers of 127 tokens one above the other, and the part of a block before them, at most.
    const mostAgain = 12 * 127 + TOKENS_PER_BLOCK - 1;
    expect(windowsPrivate.computedTokens - whole.computedTokens).toBeGreaterThan(0);
    expect(windowsPrivate.computedTokens - whole.computedTokens).toBeLessThanOrEqual(served.length * mostAgain);
    // Without the keys and values of full attention a match is worth nothing.
    expect(named('key and value of full attention private').hitRate).toBe(0);
    expect(advice.choices[advice.best]).toEqual(whole);
    expect(advice.policies).toBe('key=required,value=required');
  });
});
