import { ReuseSelectionError } from '@bufferwise/core-policy';
import type { RequestState } from './request-state.ts';

/** What a first resume may choose. */
export interface ResumeOptions {
  /** Optional groups whose complete pages the request uses. Left out: none. */
  optionalReuseGroups?: readonly number[];
  /** Optional groups whose live history at the match the caller recomputes before its first commit, so that they may be published. */
  rebuiltGroups?: readonly number[];
}

export interface Selection {
  readonly selected: ReadonlySet<number>;
  readonly rebuilt: ReadonlySet<number>;
}

/** @throws {ReuseSelectionError} when a list names a group it must not name, or comes after the first resume */
export function readSelection(state: RequestState, options: ResumeOptions): Selection {
  const { optionalReuseGroups, rebuiltGroups } = options;
  if (state.resumedBefore) {
    if (optionalReuseGroups !== undefined)
      throw new ReuseSelectionError('selection-not-first-resume', 'optionalReuseGroups', null);
    if (rebuiltGroups !== undefined) throw new ReuseSelectionError('selection-not-first-resume', 'rebuiltGroups', null);
  }
  const selected = new Set(optionalReuseGroups);
  const rebuilt = new Set(rebuiltGroups);
  for (const groupId of selected) {
    if (checkedGroup(state, 'optionalReuseGroups', groupId).complete) continue;
    throw new ReuseSelectionError('selection-incomplete', 'optionalReuseGroups', groupId);
  }
  for (const groupId of rebuilt) {
    checkedGroup(state, 'rebuiltGroups', groupId);
    if (selected.has(groupId)) throw new ReuseSelectionError('selection-both-lists', 'rebuiltGroups', groupId);
  }
  return { selected, rebuilt };
}

function checkedGroup(state: RequestState, list: 'optionalReuseGroups' | 'rebuiltGroups', groupId: number) {
  const group = state.groups[groupId];
  if (group === undefined) throw new ReuseSelectionError('selection-unknown-group', list, groupId);
  if (group.rules.policy !== 'optional') throw new ReuseSelectionError('selection-not-optional', list, groupId);
  return group;
}
