import type { LayerGroupId } from '@bufferwise/core-policy';
import type { ReuseScope } from '../../src/index.ts';

/** One operation of a published reuse case; which fields there are follows from `op`. */
export interface Operation {
  op: 'create' | 'resume' | 'resize' | 'commit' | 'suspend' | 'stopCommitting' | 'close' | 'probe' | 'drop';
  name: string;
  tokens: number[];
  scope: ReuseScope | null;
  optionalReuseGroups?: LayerGroupId[];
  rebuiltGroups?: LayerGroupId[];
  capacity: number;
  historyLength: number;
  end: boolean;
  snapshot: boolean;
  block: number;
  group: number;
  expect: { value?: boolean | number; error?: string; numCommittedTokens?: number; reuseStatus?: { group: number }[] };
}
