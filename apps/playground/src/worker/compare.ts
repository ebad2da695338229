import type { ReusePolicy } from '@bufferwise/core-policy';
import { type Completion, type EngineModel, HybridEngine } from '@bufferwise/hybrid-engine';
import type { EngineSettings } from '../protocol/about.ts';
import type { ComparisonSide } from '../protocol/messages.ts';
import { concatTokens } from './concat-tokens.ts';

/** The two requests: a common beginning, and how each goes on. */
export interface ComparedPrompts {
  readonly beginning: Uint32Array;
  readonly endings: readonly [Uint32Array, Uint32Array];
}

const NEW_TOKENS = 12;

/** What two requests on one beginning come to under some policies, one behind the other in an engine of their own. */
export async function runUnder(
  {
    model,
    device,
    settings,
    prompts,
  }: { model: EngineModel; device: GPUDevice; settings: EngineSettings; prompts: ComparedPrompts },
  policies: Readonly<Record<string, ReusePolicy>>,
): Promise<ComparisonSide & { tokens: readonly number[] }> {
  const { deviceBytes, hostBytes, maxDrafts } = settings;
  const speculation = maxDrafts > 0 ? { maxDrafts } : undefined;
  const engine = await HybridEngine.create({ model, device, cache: { deviceBytes, hostBytes, policies }, speculation });
  try {
    let peakBytes = 0;
    const ask = (ending: Uint32Array): Promise<Completion> =>
      engine.complete({
        prompt: concatTokens(prompts.beginning, ending),
        turnBorders: [prompts.beginning.length],
        maxNewTokens: NEW_TOKENS,
        onLogits: () => {
          peakBytes = Math.max(peakBytes, usedBytes(engine));
        },
      });
    const first = await ask(prompts.endings[0]);
    const leftBytes = usedBytes(engine);
    const second = await ask(prompts.endings[1]);
    const tokens = [...first.tokens, ...second.tokens];
    return { leftBytes, peakBytes, first: first.report, second: second.report, tokens };
  } finally {
    await engine.close();
  }
}

function usedBytes(engine: HybridEngine): number {
  return engine.storage().reduce((sum, { total, free, slotBytes }) => sum + (total - free) * slotBytes, 0);
}
