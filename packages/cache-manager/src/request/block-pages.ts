import { NONE } from '../columns.ts';
import type { PageTable } from '../page/page-table.ts';
import type { StorageManager } from '../storage/storage-manager.ts';
import type { GroupState } from './group-state.ts';

/** Rows of a group that name the page of a block: one where the beams share it, else one for each beam. */
export function numRowsOf(group: GroupState, ordinal: number): number {
  return ordinal < group.sharedEnd ? 1 : group.numBeams;
}

/** Pages of a block that nobody but this request holds, over all its beams: their slots become available when it lets go. */
export function countSolePages({ holds }: PageTable, group: GroupState, ordinal: number): number {
  const first = group.page(ordinal);
  if (first === NONE) return 0;
  const numRows = numRowsOf(group, ordinal);
  if (numRows === 1) return holds[first] === 1 ? 1 : 0;
  let count = 0;
  for (let beam = 0; beam < numRows; beam++) {
    const page = group.page(ordinal, beam);
    let named = 0;
    let isFirst = true;
    for (let other = 0; other < numRows; other++) {
      if (group.page(ordinal, other) !== page) continue;
      if (other < beam) isFirst = false;
      named++;
    }
    if (isFirst && holds[page] === named) count++;
  }
  return count;
}

/** Lets go of the pages of a block in every beam. What is shown for it is the caller's affair. */
export function releaseBlock(storage: StorageManager, group: GroupState, ordinal: number): void {
  for (let beam = numRowsOf(group, ordinal) - 1; beam >= 0; beam--) {
    const page = group.page(ordinal, beam);
    if (page === NONE) continue;
    group.setPage(ordinal, NONE, beam);
    storage.release(page);
  }
}

/** Lets go of the recurrent state of every beam. */
export function releaseStates(storage: StorageManager, group: GroupState): void {
  for (let beam = 0; beam < group.numBeams; beam++) {
    const row = group.row(beam);
    if (row.statePage !== NONE) storage.release(row.statePage);
    row.statePage = NONE;
  }
}
