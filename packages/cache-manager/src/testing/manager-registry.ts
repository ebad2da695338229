import type { ManagerState } from '../manager-state.ts';

const states = new WeakMap<object, ManagerState>();

/** Lets the testing entry point see what a manager owns. */
export function registerManager(manager: object, state: ManagerState): void {
  states.set(manager, state);
}

export function stateOf(manager: object): ManagerState {
  const state = states.get(manager);
  if (state === undefined) throw new TypeError('not a KvCacheManager of this copy of @bufferwise/cache-manager');
  return state;
}
