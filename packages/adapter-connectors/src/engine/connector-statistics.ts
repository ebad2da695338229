import type { LayerGroupId } from '@bufferwise/core-policy';

/** What became of the pages of one group. */
export interface GroupCounts {
  readonly loaded: number;
  readonly failed: number;
  readonly saved: number;
  /** Were in the store already, or on their way there. */
  readonly present: number;
  /** Seen for the first time, or of a text that is too short. */
  readonly notAdmitted: number;
  /** More was under way than may be. */
  readonly overBudget: number;
  /** The store had no room, or did not answer. */
  readonly notStored: number;
}

/** Pages by group; private groups are not among them. Counts since the connector was made. */
export interface ConnectorStatistics {
  readonly groups: ReadonlyMap<LayerGroupId, GroupCounts>;
}

/** Counts, group by group. */
export class GroupCounters {
  readonly groups: ReadonlyMap<LayerGroupId, { -readonly [Name in keyof GroupCounts]: number }>;

  constructor(groupIds: readonly LayerGroupId[]) {
    this.groups = new Map(
      groupIds.map((id) => [id, { loaded: 0, failed: 0, saved: 0, present: 0, notAdmitted: 0, overBudget: 0, notStored: 0 }]),
    );
  }

  count(what: keyof GroupCounts, groupId: LayerGroupId, pages = 1): void {
    const counts = this.groups.get(groupId);
    if (counts !== undefined) counts[what] += pages;
  }

  snapshot(): ConnectorStatistics {
    return { groups: new Map([...this.groups].map(([id, counts]) => [id, { ...counts }])) };
  }
}
