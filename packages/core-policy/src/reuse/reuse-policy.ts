/**
 * How a buffer takes part in prefix reuse.
 *
 * - `required`: limits how long a match can be; published on commit and shared.
 * - `optional`: never limits a match; published on commit, used only by a request that selects its group.
 * - `private`: never limits a match, never published; it belongs to one request alone.
 */
export type ReusePolicy = 'required' | 'optional' | 'private';

/** All policies, strictest first. */
export const REUSE_POLICIES: readonly ReusePolicy[] = Object.freeze(['required', 'optional', 'private'] as const);

/** The policy where neither buffer nor layer names one. */
export const DEFAULT_REUSE_POLICY: ReusePolicy = 'required';

/** The policy of a buffer: its own, else its layer's, else the default. */
export function resolveReusePolicy(buffer: ReusePolicy | undefined, layer: ReusePolicy | undefined): ReusePolicy {
  return buffer ?? layer ?? DEFAULT_REUSE_POLICY;
}

/** Whether a missing page of this policy shortens a match. */
export function limitsMatch(policy: ReusePolicy): boolean {
  return policy === 'required';
}

/** Whether pages of this policy may ever be seen by another request. */
export function isShareable(policy: ReusePolicy): boolean {
  return policy !== 'private';
}
