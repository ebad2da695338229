import type { CacheConfig, LayerConfig, ReusePolicy } from '@bufferwise/core-policy';
import { advisePolicies } from './auto-policies.ts';
import { EngineError } from './engine-error.ts';

/**
 * Reuse policies by role of the buffers (`value`), or by layer and role (`3.value`), which counts more; or what says it for each. Buffers that
 * are not named keep theirs. `auto`: as `advisePolicies` chooses by cost.
 */
export type PolicyChoice =
  | 'auto'
  | Readonly<Record<string, ReusePolicy>>
  | ((layerId: number, role: string) => ReusePolicy | undefined);

/**
 * The layers of a config with chosen policies.
 *
 * @throws {EngineError} `engine-options` on a name that no buffer has
 */
export function withPolicies(config: CacheConfig, choice: PolicyChoice = {}): LayerConfig[] {
  const policies = choice === 'auto' ? advisePolicies(config).policies : choice;
  if (typeof policies !== 'function') requireNames(config.layers, Object.keys(policies));
  const policyOf = (layerId: number, role: string) =>
    typeof policies === 'function' ? policies(layerId, role) : (policies[`${layerId}.${role}`] ?? policies[role]);
  return config.layers.map((layer) => ({
    ...layer,
    buffers: layer.buffers.map((buffer) => ({
      ...buffer,
      reusePolicy: policyOf(layer.layerId, buffer.role) ?? buffer.reusePolicy,
    })),
  }));
}

function requireNames(layers: readonly LayerConfig[], names: readonly string[]): void {
  const known = new Set(layers.flatMap(({ layerId, buffers }) => buffers.flatMap(({ role }) => [role, `${layerId}.${role}`])));
  const unknown = names.find((name) => !known.has(name));
  if (unknown === undefined) return;
  throw new EngineError(
    'engine-options',
    `cache.policies names ${unknown}, which no buffer of the model is called; roles are ${[...new Set(layers.flatMap(({ buffers }) => buffers.map(({ role }) => role)))].join(', ')}, alone or behind a layer (3.${layers[0].buffers[0].role})`,
  );
}
