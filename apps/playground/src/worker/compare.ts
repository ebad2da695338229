import type { Completion, EngineModel, HybridEngine } from '@bufferwise/hybrid-engine';
import type { EngineSettings } from '../protocol/about.ts';
import type { ComparisonSide } from '../protocol/messages.ts';
import { concatTokens } from './concat-tokens.ts';
import { makeEngine } from './make-engine.ts';

/** The two requests: a common beginning, and how each goes on. */
export interface ComparedPrompts {
  readonly beginning: Uint32Array;
  readonly endings: readonly [Uint32Array, Uint32Array];
}

const NEW_TOKENS = 12;

/** What two requests on one beginning come to under some settings, one behind the other in an engine of their own. */
export async function runUnder(
  settings: EngineSettings,
  { model, device, prompts }: { model: EngineModel; device: GPUDevice; prompts: ComparedPrompts },
): Promise<ComparisonSide & { tokens: readonly number[] }> {
  const engine = await makeEngine(settings, { model, device });
  try {
    const ask = (ending: Uint32Array): Promise<Completion> =>
      engine.complete({
        prompt: concatTokens(prompts.beginning, ending),
        turnBorders: [prompts.beginning.length],
        maxNewTokens: NEW_TOKENS,
      });
    const first = await ask(prompts.endings[0]);
    const leftBytes = engine.storage().reduce((sum, { total, free, slotBytes }) => sum + (total - free) * slotBytes, 0);
    const second = await ask(prompts.endings[1]);
    const tokens = [...first.tokens, ...second.tokens];
    return { leftBytes, ...mostInUse(engine), first: first.report, second: second.report, tokens };
  } finally {
    await engine.close();
  }
}

function mostInUse({ manager }: HybridEngine): Pick<ComparisonSide, 'mostBytes' | 'mostOfWindows'> {
  const pools = manager.storageStatistics(0);
  const peaks = manager.takePeakStatistics(0).map(({ unavailable: pages }, i) => ({ pages, bytes: pages * pools[i].slotBytes }));
  const ofWindows = manager.layout.poolGroups.map(({ lifecycleIds }) =>
    lifecycleIds.some((id) => {
      const lifecycle = manager.lifecycles.get(id);
      return lifecycle.kind === 'attention' && lifecycle.windowSize !== null;
    }),
  );
  const sum = (which: readonly { pages: number; bytes: number }[]) =>
    which.reduce((a, b) => ({ pages: a.pages + b.pages, bytes: a.bytes + b.bytes }), { pages: 0, bytes: 0 });
  return { mostBytes: sum(peaks).bytes, mostOfWindows: sum(peaks.filter((_, i) => ofWindows[i])) };
}
