import type { KvCacheManager } from '../../src/index.ts';
import { makeMove } from '../../src/rebalance/rebalance.ts';
import { stateOf } from '../../src/testing/manager-registry.ts';

/** Moves slots between two pool groups of a tier as `rebalance` does, whatever was seen of them. Says whether that was possible. */
export async function moveSlots(
  manager: KvCacheManager,
  tier: number,
  move: { from: number; to: number; slots: readonly number[] },
): Promise<boolean> {
  const state = stateOf(manager);
  const moved = await state.turns.take(async () => {
    if (tier === 0 && state.storage.device === null) return false;
    return makeMove(state, tier, { ...move, grains: 0, gain: 0, loss: 0, reason: 'misses' });
  });
  state.afterCall();
  return moved;
}
