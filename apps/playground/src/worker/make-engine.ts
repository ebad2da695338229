import { HybridEngine, type HybridEngineOptions } from '@bufferwise/hybrid-engine';
import type { EngineSettings } from '../protocol/about.ts';

/** An engine that is as the settings say. */
export function makeEngine(
  settings: EngineSettings,
  options: Pick<HybridEngineOptions, 'model' | 'device' | 'outside' | 'events'>,
): Promise<HybridEngine> {
  const { deviceBytes, hostBytes, maxDrafts, chunkTokens, scratch, policies } = settings;
  return HybridEngine.create({
    ...options,
    cache: { deviceBytes, hostBytes, scratch, policies },
    chunkTokens,
    speculation: maxDrafts > 0 ? { maxDrafts } : undefined,
  });
}
