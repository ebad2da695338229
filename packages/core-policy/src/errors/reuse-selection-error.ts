import { BufferwiseError } from './bufferwise-error.ts';

/** The two lists of groups that a first resume takes. */
export type ReuseSelectionList = 'optionalReuseGroups' | 'rebuiltGroups';

/** Why a list was refused. Stable within a major version. */
export type ReuseSelectionCode =
  | 'selection-unknown-group'
  | 'selection-not-optional'
  | 'selection-incomplete'
  | 'selection-both-lists'
  | 'selection-not-first-resume';

/** A resume named a group that it may not name. Nothing has changed; a later resume may choose anew. */
export class ReuseSelectionError extends BufferwiseError {
  /** Why the list was refused. */
  declare readonly code: ReuseSelectionCode;
  /** The list that was refused. */
  readonly list: ReuseSelectionList;
  /** The entry at fault as it was passed; null when the list itself may not be there. */
  readonly groupId: number | null;

  constructor(code: ReuseSelectionCode, list: ReuseSelectionList, groupId: number | null) {
    super(code, `${list}: ${EXPLANATION[code](groupId)}`);
    this.list = list;
    this.groupId = groupId;
  }
}

const EXPLANATION: Record<ReuseSelectionCode, (groupId: number | null) => string> = {
  'selection-unknown-group': (groupId) => `there is no group ${groupId}. reuseStatus lists the groups there are.`,
  'selection-not-optional': (groupId) =>
    `group ${groupId} is not optional. Name optional groups only; the others need no choice.`,
  'selection-incomplete': (groupId) =>
    `group ${groupId} is not complete at the match. Select groups whose reuseStatus says complete, or recompute this one.`,
  'selection-both-lists': (groupId) => `group ${groupId} is selected for reuse as well. Name a group in one of the two lists.`,
  'selection-not-first-resume': () =>
    'only the first resume takes this list. The first choice stays in force; leave the list out.',
};
