import type { KvCacheManager } from '@bufferwise/cache-manager';
import type { BufferId, Lifecycle, ReusePolicy } from '@bufferwise/core-policy';
import type { HybridModel } from '@bufferwise/hybrid-engine';
import { tierGranularity } from '@bufferwise/scratch-allocator';
import type { GroupAbout, LayerAbout } from '../protocol/about.ts';

/** The buffer groups of a manager, with names that tell them apart. */
export function describeGroups(manager: KvCacheManager): GroupAbout[] {
  const { lifecycles } = manager.lifecycles;
  const names = lifecycles.map((lifecycle, id) => nameOf(lifecycle, manager.bufferGrouping[id]));
  return lifecycles.map((lifecycle, id): GroupAbout => {
    const buffers = manager.bufferGrouping[id];
    const alone = names.filter((name) => name === names[id]).length === 1;
    return {
      id,
      name: alone ? names[id] : `${names[id]}, ${lifecycle.policy}`,
      holds: holdsOf(buffers),
      policy: lifecycle.policy,
      kind: lifecycle.kind,
    };
  });
}

/** The layers of a model that keep something, with the policy that each buffer has in a manager. */
export function describeLayers(model: HybridModel, manager: KvCacheManager): LayerAbout[] {
  const policyOf = new Map<string, ReusePolicy>();
  manager.bufferGrouping.forEach((buffers, id) => {
    for (const { layerId, role } of buffers) policyOf.set(`${layerId}.${role}`, manager.lifecycles.lifecycles[id].policy);
  });
  return model.description.layers.map(({ mixer }, layerId) => {
    const roles = manager.bufferGrouping.flat().filter((buffer) => buffer.layerId === layerId);
    const name =
      mixer.kind === 'mamba2' ? 'Mamba-2' : mixer.windowSize === undefined ? 'Full attention' : `Window of ${mixer.windowSize}`;
    return {
      layerId,
      name,
      buffers: roles.map(({ role }) => ({ role, policy: policyOf.get(`${layerId}.${role}`) ?? 'required' })),
    };
  });
}

/** The least device memory that the pools of a manager can do with, bytes: each grows in steps of its own. */
export function leastDeviceBytes({ layout }: KvCacheManager): number {
  const numPools = layout.poolGroups.reduce((sum, { pools }) => sum + pools.length, 0);
  return numPools * tierGranularity({ tier: 'device', quota: 1 });
}

function nameOf(lifecycle: Lifecycle, buffers: readonly BufferId[]): string {
  if (lifecycle.kind === 'ssm') return buffers.every(({ role }) => role.startsWith('replay')) ? 'Replay ring' : 'Recurrent state';
  return lifecycle.windowSize === null ? 'Full attention' : `Window of ${lifecycle.windowSize}`;
}

function holdsOf(buffers: readonly BufferId[]): string {
  const roles = [...new Set(buffers.map(({ role }) => role.replaceAll('_', ' ')))];
  const layers = [...new Set(buffers.map(({ layerId }) => layerId))];
  return `${roles.join(' and ')} of ${layers.length === 1 ? 'layer' : 'layers'} ${layers.join(', ')}`;
}
