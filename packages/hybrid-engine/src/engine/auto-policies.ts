import type { CacheConfig, LayerConfig, ReusePolicy } from '@bufferwise/core-policy';
import { explain } from '@bufferwise/scratch-allocator';

/** What was chosen for a model, and why. */
export interface PolicyAdvice {
  /** Policies by `layer.role`; what is not named is required. */
  readonly policies: Readonly<Record<string, ReusePolicy>>;
  /** One a choice, in sentences. */
  readonly reasons: readonly string[];
}

/**
 * Chooses policies by what they cost. Replay rings are private: a snapshot is the state itself, so nobody else can use one. Windows become
 * optional where having them again is cheap: the run that fills them, all windows one behind the other, is shorter than half the prompts that
 * the cache has room for, so a match is worth more than the run even when all windows are lost. Beside recurrent state, and where sinks
 * are live for ever, the run is the whole prefix: there windows stay required.
 *
 * @param config of the model with everything required; `explain` tells from it what a request and its windows take
 */
export function advisePolicies(config: CacheConfig): PolicyAdvice {
  const policies: Record<string, ReusePolicy> = {};
  const reasons: string[] = [];
  const rings = buffersOf(config.layers, (layer, role) => layer.type === 'ssm' && role.startsWith('replay'));
  for (const name of rings) policies[name] = 'private';
  if (rings.length > 0) reasons.push('Replay rings are private: a snapshot is the state itself, and nobody else can use one.');
  const windows = windowsToSplit(config);
  if (windows === null) return { policies, reasons };
  for (const name of windows.names) policies[name] = windows.optional ? 'optional' : 'required';
  reasons.push(windows.reason);
  return { policies, reasons };
}

interface WindowChoice {
  readonly names: readonly string[];
  readonly optional: boolean;
  readonly reason: string;
}

function windowsToSplit(config: CacheConfig): WindowChoice | null {
  const attention = config.layers.filter(isAttention).filter(({ buffers }) => buffers.length > 0);
  const windowed = attention.filter((layer) => layer.slidingWindowSize !== undefined);
  if (windowed.length === 0) return null;
  const names = buffersOf(windowed, () => true);
  const stays = (why: string): WindowChoice => ({ names, optional: false, reason: `Windows are required: ${why}.` });
  if (config.layers.some(({ type }) => type === 'ssm'))
    return stays('to fill them again would take recurrent state from before the match');
  if (windowed.length === attention.length) return stays('without them nothing would hold a match up');
  if (windowed.some(({ numSinkTokens = 0 }) => numSinkTokens > 0))
    return stays('with sinks, filling them again begins at the first token');
  const runTokens = windowed.reduce((sum, { slidingWindowSize = 1 }) => sum + slidingWindowSize - 1, config.tokensPerBlock - 1);
  const longest = longestFitting(config);
  const bytes = explain(config, { lengths: [longest] }).groups.reduce(
    (sum, { maxRequestBytes }) => sum + (maxRequestBytes ?? 0),
    0,
  );
  const run = `filling them again runs at most ${runTokens} tokens`;
  if (2 * runTokens > longest) return stays(`${run}, and the cache has room for prompts of ${longest}`);
  return {
    names,
    optional: true,
    reason: `Windows are optional: no match waits for their ${bytes} bytes, and ${run} of prompts of up to ${longest}.`,
  };
}

/** The longest request that fits alone, up to a power of two. */
function longestFitting(config: CacheConfig): number {
  let longest = 1;
  for (let length = 1; length <= 2 ** 20; length *= 2) {
    if (explain(config, { lengths: [length] }).totals.requests[0].numFitting < 1) break;
    longest = length;
  }
  return longest;
}

function buffersOf(layers: readonly LayerConfig[], which: (layer: LayerConfig, role: string) => boolean): string[] {
  return layers.flatMap((layer) =>
    layer.buffers.filter(({ role }) => which(layer, role)).map(({ role }) => `${layer.layerId}.${role}`),
  );
}

type Layer = CacheConfig['layers'][number];

function isAttention(layer: Layer): layer is Extract<Layer, { type: 'attention' }> {
  return layer.type === 'attention';
}
