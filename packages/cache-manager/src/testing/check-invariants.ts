import type { KvCacheManager } from '../kv-cache-manager.ts';
import { checkState } from './check-state.ts';
import { stateOf } from './manager-registry.ts';

/** Verifies everything that must be true of a manager between calls. Throws {InvariantError} with all contradictions. */
export function checkInvariants(manager: KvCacheManager): void {
  checkState(stateOf(manager));
}
