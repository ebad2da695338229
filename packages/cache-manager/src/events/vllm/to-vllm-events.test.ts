import type { LayerGroupId, Lifecycle } from '@bufferwise/core-policy';
import { describe, expect, test } from 'vitest';
import type { KvEvent, StoredEvent, UpdatedEvent } from '../../ports/kv-event-sink.ts';
import { blockKeys } from '../../tree/block-key.ts';
import { keyToHex, keyToU64 } from '../block-hash.ts';
import { hasVllmCounterpart, toVllmEvents } from './to-vllm-events.ts';

const TOKENS = [0, 1, 2, 3, 4, 5, 6, 7];
const [FIRST, SECOND] = blockKeys(TOKENS, {}, 4);
const FULL: Lifecycle = { kind: 'attention', windowSize: null, numSinkBlocks: 0, sparsityGroup: null, policy: 'required' };
const WINDOW: Lifecycle = { ...FULL, windowSize: 64, numSinkBlocks: 1 };
const STATE: Lifecycle = { kind: 'ssm', policy: 'required' };

const stored: StoredEvent = {
  id: 0,
  type: 'stored',
  groupId: 1 as LayerGroupId,
  lifecycle: FULL,
  tier: 0,
  medium: 'device',
  scope: {},
  parentKey: null,
  blocks: [
    { key: FIRST, tokens: Uint32Array.of(0, 1, 2, 3), priority: 35 },
    { key: SECOND, tokens: Uint32Array.of(4, 5, 6, 7), priority: 35 },
  ],
};
const moved: UpdatedEvent = {
  id: 1,
  type: 'updated',
  groupId: 1 as LayerGroupId,
  lifecycle: FULL,
  tier: { from: 0, to: 1 },
  medium: { from: 'device', to: 'host' },
  scope: {},
  parentKey: FIRST,
  block: stored.blocks[1],
};

describe('a stored run', () => {
  test('is one event with all tokens', () => {
    expect(toVllmEvents([stored])).toEqual([
      {
        type: 'BlockStored',
        blockHashes: [keyToU64(FIRST), keyToU64(SECOND)],
        parentBlockHash: null,
        tokenIds: TOKENS,
        blockSize: 4,
        loraId: null,
        medium: 'GPU',
        loraName: null,
        groupIndex: 1,
        specKind: 'full_attention',
        locality: 'LOCAL',
      },
    ]);
  });

  test('tells what its group is', () => {
    expect(toVllmEvents([{ ...stored, lifecycle: WINDOW }])[0]).toMatchObject({ specKind: 'sliding_window', slidingWindow: 64 });
    const [ofState] = toVllmEvents([{ ...stored, lifecycle: STATE }]);
    expect(ofState).toMatchObject({ specKind: 'mamba' });
    expect(ofState).not.toHaveProperty('slidingWindow');
    expect(toVllmEvents([stored], { specKind: (groupId, { policy }) => `${groupId} ${policy}` })[0]).toMatchObject({
      specKind: '1 required',
    });
  });

  test('tells its scope: the LoRA in every block, the salt in the first of a text only', () => {
    const scope = { loraId: 7n, salt: 11n };
    expect(toVllmEvents([{ ...stored, scope }])[0]).toMatchObject({
      loraId: 7,
      loraName: '7',
      extraKeys: [['7', 'dynamo-cache-salt:11'], ['7']],
    });
    expect(toVllmEvents([{ ...stored, scope, parentKey: FIRST }])[0]).toMatchObject({ extraKeys: [['7'], ['7']] });
    expect(toVllmEvents([{ ...stored, scope: { salt: 11n } }])[0]).toMatchObject({
      loraName: null,
      extraKeys: [['dynamo-cache-salt:11'], null],
    });
    expect(toVllmEvents([{ ...stored, scope: { loraId: 2n ** 40n } }])[0]).toMatchObject({
      loraId: null,
      loraName: '1099511627776',
    });
    const named = toVllmEvents([{ ...stored, scope }], { loraName: (id) => `lora-${id}`, saltKey: (salt) => `tenant ${salt}` });
    expect(named[0]).toMatchObject({ loraName: 'lora-7', extraKeys: [['lora-7', 'tenant 11'], ['lora-7']] });
  });

  test('has a token where a digest is, and the digest among the extra keys', () => {
    const digest = new Uint8Array(32).fill(0xab);
    const event = { ...stored, blocks: [stored.blocks[0], { ...stored.blocks[1], tokens: [4, digest, 6, 7] }] };
    const extraKeys = [null, [[keyToHex(digest), 1]]];
    expect(toVllmEvents([event])[0]).toMatchObject({ tokenIds: [0, 1, 2, 3, 4, 0, 6, 7], extraKeys });
    expect(toVllmEvents([event], { digestTokenId: 99 })[0]).toMatchObject({ tokenIds: [0, 1, 2, 3, 4, 99, 6, 7], extraKeys });
  });
});

describe('other events', () => {
  test('a removal has its medium and group', () => {
    const removed: KvEvent = { id: 0, type: 'removed', groupId: 1 as LayerGroupId, tier: 2, medium: 'disk', keys: [SECOND] };
    expect(toVllmEvents([removed])).toEqual([
      { type: 'BlockRemoved', blockHashes: [keyToU64(SECOND)], medium: 'STORAGE', groupIndex: 1, locality: 'LOCAL' },
    ]);
    expect(toVllmEvents([removed], { locality: null })[0]).not.toHaveProperty('locality');
  });

  test('a page that moved is stored there first and then removed here', () => {
    expect(toVllmEvents([moved])).toMatchObject([
      {
        type: 'BlockStored',
        medium: 'CPU',
        blockHashes: [keyToU64(SECOND)],
        parentBlockHash: keyToU64(FIRST),
        tokenIds: [4, 5, 6, 7],
        blockSize: 4,
      },
      { type: 'BlockRemoved', medium: 'GPU', blockHashes: [keyToU64(SECOND)] },
    ]);
  });

  test('a page that moved within a medium, and new groups, have nothing to say', () => {
    const within: KvEvent = { ...moved, medium: { from: 'host', to: 'host' } };
    const created: KvEvent = { id: 0, type: 'created', groupId: 1 as LayerGroupId, lifecycle: FULL, slotsPerTier: [4] };
    expect(toVllmEvents([within, created])).toEqual([]);
    expect([within, created, moved, stored].map(hasVllmCounterpart)).toEqual([false, false, true, true]);
  });

  test('everything gone is one clear', () => {
    expect(toVllmEvents([{ id: 0, type: 'cleared' }])).toEqual([{ type: 'AllBlocksCleared' }]);
  });
});
