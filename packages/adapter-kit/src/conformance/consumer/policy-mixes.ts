import { type LayerConfig, REUSE_POLICIES, type ReusePolicy } from '@bufferwise/core-policy';
import type { ConsumerMix } from './harness.ts';

/**
 * Layers with other policies, for every way to give each role one. Roles of one name have one policy in all layers.
 *
 * @param layers whose own policies are left away
 * @param policies which may be given, by role. Default: all three
 */
export function policyMixes(
  layers: readonly LayerConfig[],
  policies: (role: string) => readonly ReusePolicy[] = () => REUSE_POLICIES,
): ConsumerMix[] {
  const roles = [...new Set(layers.flatMap(({ buffers }) => buffers.map(({ role }) => role)))];
  let mixes: ReadonlyMap<string, ReusePolicy>[] = [new Map()];
  for (const role of roles) mixes = mixes.flatMap((mix) => policies(role).map((policy) => new Map([...mix, [role, policy]])));
  return mixes.map((mix) => ({
    name: roles.map((role) => `${role} ${mix.get(role)}`).join(', '),
    layers: layers.map((layer) => ({
      ...layer,
      reusePolicy: undefined,
      buffers: layer.buffers.map((buffer) => ({ ...buffer, reusePolicy: mix.get(buffer.role) })),
    })),
  }));
}
