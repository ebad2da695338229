import type { LayerGroupId, Lifecycle } from '@bufferwise/core-policy';
import type { KvEvent, Medium, StoredBlock, StoredEvent } from '../../ports/kv-event-sink.ts';
import type { ScopeIds } from '../../tree/reuse-scope.ts';
import type { MultimodalDigest } from '../../tree/token-seq.ts';
import { keyToHex, keyToU64 } from '../block-hash.ts';
import type { VllmBlockStored, VllmEvent, VllmExtraKey } from './vllm-events.ts';

/** What readers of vLLM's events need to know and a manager does not. */
export interface VllmTranslation {
  /** What a group is to them. Default: `full_attention`, `sliding_window` or `mamba`, by its lifecycle. */
  specKind?: (groupId: LayerGroupId, lifecycle: Lifecycle) => string;
  /** Where the pages are, seen from the reader; null leaves the field out. Default `LOCAL`. */
  locality?: string | null;
  /** Name of a LoRA. Default: its id in decimal. */
  loraName?: (loraId: bigint) => string;
  /** The text that a salt appears as. Default `dynamo-cache-salt:` and the salt in decimal, which no LoRA is called. */
  saltKey?: (salt: bigint) => string;
  /** Token id in the place of a digest; the digest itself is among the extra keys. Default 0. */
  digestTokenId?: number;
}

const MEDIUM: Readonly<Record<Medium, string>> = { device: 'GPU', host: 'CPU', disk: 'STORAGE' };

/**
 * A manager's events in the words of vLLM. Hashes are the last 8 bytes of the block keys. A page that moved is stored in the new
 * medium first and then removed from the old, so that no reader thinks it gone; `created` has no counterpart.
 *
 * A run of stored blocks stays one event; its `token_ids` are always `block_size` for each hash.
 */
export function toVllmEvents(events: readonly KvEvent[], translation: VllmTranslation = {}): VllmEvent[] {
  return events.flatMap((event) => translated(event, translation));
}

/** Whether an event has anything to say in vLLM's words. */
export function hasVllmCounterpart(event: KvEvent): boolean {
  return event.type !== 'created' && !(event.type === 'updated' && event.medium.from === event.medium.to);
}

function translated(event: KvEvent, translation: VllmTranslation): VllmEvent[] {
  switch (event.type) {
    case 'created':
      return [];
    case 'cleared':
      return [{ type: 'AllBlocksCleared' }];
    case 'stored':
      return [stored(event, event.medium, translation)];
    case 'removed':
      return [removed(event.groupId, event.keys.map(keyToU64), event.medium, translation)];
    case 'updated': {
      const { from, to } = event.medium;
      if (from === to) return [];
      return [
        stored({ ...event, blocks: [event.block] }, to, translation),
        removed(event.groupId, [keyToU64(event.block.key)], from, translation),
      ];
    }
  }
}

type Run = Pick<StoredEvent, 'groupId' | 'lifecycle' | 'scope' | 'parentKey' | 'blocks'>;

function stored(run: Run, medium: Medium, translation: VllmTranslation): VllmBlockStored {
  const { groupId, lifecycle, scope, parentKey, blocks } = run;
  const { specKind = defaultKind, locality = 'LOCAL', loraName = String, digestTokenId = 0 } = translation;
  const extraKeys = blocks.map((block, i) => extraKeysOf(block, scope, parentKey === null && i === 0, translation));
  return {
    type: 'BlockStored',
    blockHashes: blocks.map(({ key }) => keyToU64(key)),
    parentBlockHash: parentKey === null ? null : keyToU64(parentKey),
    tokenIds: blocks.flatMap(({ tokens }) =>
      Array.from<number | MultimodalDigest, number>(tokens, (token) => (typeof token === 'number' ? token : digestTokenId)),
    ),
    blockSize: blocks[0].tokens.length,
    loraId: smallId(scope.loraId),
    medium: MEDIUM[medium],
    loraName: scope.loraId === undefined ? null : loraName(scope.loraId),
    ...(extraKeys.some((keys) => keys !== null) && { extraKeys }),
    groupIndex: groupId,
    specKind: specKind(groupId, lifecycle),
    ...(lifecycle.kind === 'attention' && lifecycle.windowSize !== null && { slidingWindow: lifecycle.windowSize }),
    ...(locality !== null && { locality }),
  };
}

function removed(
  groupId: LayerGroupId,
  blockHashes: bigint[],
  medium: Medium,
  { locality = 'LOCAL' }: VllmTranslation,
): VllmEvent {
  return {
    type: 'BlockRemoved',
    blockHashes,
    medium: MEDIUM[medium],
    groupIndex: groupId,
    ...(locality !== null && { locality }),
  };
}

/** LoRA, then pieces of other content, then the salt, which stands at the first block of a text only. */
function extraKeysOf(
  { tokens }: StoredBlock,
  scope: ScopeIds,
  isFirst: boolean,
  translation: VllmTranslation,
): VllmExtraKey[] | null {
  const { loraName = String, saltKey = defaultSaltKey } = translation;
  const keys: VllmExtraKey[] = [];
  if (scope.loraId !== undefined) keys.push(loraName(scope.loraId));
  Array.from<number | MultimodalDigest>(tokens).forEach((token, offset) => {
    if (typeof token !== 'number') keys.push([keyToHex(token), offset]);
  });
  if (isFirst && scope.salt !== undefined) keys.push(saltKey(scope.salt));
  return keys.length > 0 ? keys : null;
}

function defaultKind(_groupId: LayerGroupId, lifecycle: Lifecycle): string {
  if (lifecycle.kind === 'ssm') return 'mamba';
  return lifecycle.windowSize === null ? 'full_attention' : 'sliding_window';
}

function defaultSaltKey(salt: bigint): string {
  return `dynamo-cache-salt:${salt}`;
}

/** An id that every reader's integer type holds, else null: the name says it, too. */
function smallId(id: bigint | undefined): number | null {
  return id !== undefined && id <= 0x7fffffffn ? Number(id) : null;
}
