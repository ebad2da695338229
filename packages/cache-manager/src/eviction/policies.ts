import { CostAwareQueue } from './cost-aware-queue.ts';
import type { EvictionPolicy, EvictionPolicyFactory } from './eviction-policy.ts';
import type { EvictionView } from './eviction-view.ts';
import { GuardedPolicy } from './guarded-policy.ts';
import { LruQueue } from './lru-queue.ts';
import { NumberedPages } from './numbered-pages.ts';

/** Which page leaves first: by name one of ours, or whatever the factory makes. */
export type EvictionChoice = 'lru' | 'cost-aware' | EvictionPolicyFactory;

export const DEFAULT_EVICTION: EvictionChoice = 'cost-aware';

/** The policy of one pool group. */
export function createPolicy(choice: EvictionChoice, view: EvictionView): EvictionPolicy {
  if (choice === 'lru') return new LruQueue(view.table);
  return choice === 'cost-aware' ? new CostAwareQueue(view) : new GuardedPolicy(choice(new NumberedPages(view)));
}
