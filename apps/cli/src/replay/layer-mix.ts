import type { LayerConfig, ReusePolicy } from '@bufferwise/core-policy';
import { UsageError } from '../cli-error.ts';

/** Bytes of one token in each attention layer of a mix. */
const TOKEN_BYTES = 1024;
/** Tokens whose keys and values take as many bytes as one recurrent state. */
const STATE_TOKENS = 512;

/**
 * The layers of a made-up model: parts between `+`, each `full`, `window:N` (tokens) or `state`. Attention takes 1 KiB a token in each
 * part, a state 512 KiB. Roles are `full_kv`, `window_kv` and `ssm_state`.
 *
 * @throws {UsageError} on a part that is none of these
 */
export function layerMix(text: string, tokensPerBlock: number): LayerConfig[] {
  const size = TOKEN_BYTES * tokensPerBlock;
  return text.split('+').map((part, layerId): LayerConfig => {
    const [, kind, window] = /^(full|state|window(?::(\d+))?)$/.exec(part.trim()) ?? [];
    if (kind === 'full') return { type: 'attention', layerId, buffers: [{ role: 'full_kv', size }] };
    if (kind === 'state') return { type: 'ssm', layerId, buffers: [{ role: 'ssm_state', size: TOKEN_BYTES * STATE_TOKENS }] };
    if (Number(window) >= 1) {
      return { type: 'attention', layerId, slidingWindowSize: Number(window), buffers: [{ role: 'window_kv', size }] };
    }
    throw new UsageError(`--mix has ${JSON.stringify(part)}; write full, window:N or state, with + between them`);
  });
}

/**
 * The same layers with policies by `ROLE` or `LAYER.ROLE`, which counts more.
 *
 * @throws {UsageError} on a name that no buffer has
 */
export function withRolePolicies(layers: readonly LayerConfig[], policies: Readonly<Record<string, ReusePolicy>>): LayerConfig[] {
  const names = new Set(layers.flatMap(({ layerId, buffers }) => buffers.flatMap(({ role }) => [role, `${layerId}.${role}`])));
  const unknown = Object.keys(policies).find((name) => !names.has(name));
  if (unknown !== undefined) {
    const roles = [...new Set(layers.flatMap(({ buffers }) => buffers.map(({ role }) => role)))];
    throw new UsageError(`--policies names ${unknown}, and no buffer is called so; roles are ${roles.join(', ')}`);
  }
  return layers.map((layer) => ({
    ...layer,
    buffers: layer.buffers.map((buffer) => ({
      ...buffer,
      reusePolicy: policies[`${layer.layerId}.${buffer.role}`] ?? policies[buffer.role] ?? buffer.reusePolicy,
    })),
  }));
}
