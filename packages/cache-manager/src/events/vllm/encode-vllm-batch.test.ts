import { decode } from '@msgpack/msgpack';
import { describe, expect, test } from 'vitest';
import { encodeVllmBatch, writeEvent } from './encode-vllm-batch.ts';
import { MsgpackWriter } from './msgpack-writer.ts';
import type { VllmEvent } from './vllm-events.ts';

const GOLDEN_A =
  '93cb3ff8000000000000938aa474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657391cf1122334455667788b1706172656e745f626c6f636b5f' +
  '68617368c0a9746f6b656e5f6964739401020304aa626c6f636b5f73697a6504a76c6f72615f6964c0a66d656469756da3475055a96c6f72615f6e616d65c0a96772' +
  '6f75705f69647800b26b765f63616368655f737065635f6b696e64ae66756c6c5f617474656e74696f6e84a474797065ac426c6f636b52656d6f766564ac626c6f63' +
  '6b5f68617368657391cf1122334455667788a66d656469756da3475055a967726f75705f6964780081a474797065b0416c6c426c6f636b73436c656172656400';
const GOLDEN_B =
  '93cb3ff8000000000000918da474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657392fbcf8000000000000003b1706172656e745f626c6f636b' +
  '5f6861736807a9746f6b656e5f696473980102030405060708aa626c6f636b5f73697a6504a76c6f72615f6964c0a66d656469756da3475055a96c6f72615f6e616d' +
  '65a26164aa65787472615f6b6579739293a2616492a3696d67fea473616c74c0a967726f75705f69647801b26b765f63616368655f737065635f6b696e64ae736c69' +
  '64696e675f77696e646f77bc6b765f63616368655f737065635f736c6964696e675f77696e646f7740a86c6f63616c697479a54c4f43414c01';
const GOLDEN_C = '9aab426c6f636b53746f7265649101c092010202c0a3475055c0c0c0';

const hash = 0x1122334455667788n;
const stored: VllmEvent = {
  type: 'BlockStored',
  blockHashes: [hash],
  parentBlockHash: null,
  tokenIds: [1, 2, 3, 4],
  blockSize: 4,
  loraId: null,
  medium: 'GPU',
  loraName: null,
  groupIndex: 0,
  specKind: 'full_attention',
};
const removed: VllmEvent = { type: 'BlockRemoved', blockHashes: [hash], medium: 'GPU', groupIndex: 0 };
const cleared: VllmEvent = { type: 'AllBlocksCleared' };
const rich: VllmEvent = {
  type: 'BlockStored',
  blockHashes: [-5n, 2n ** 63n + 3n],
  parentBlockHash: 7n,
  tokenIds: [1, 2, 3, 4, 5, 6, 7, 8],
  blockSize: 4,
  loraId: null,
  medium: 'GPU',
  loraName: 'ad',
  extraKeys: [['ad', ['img', -2], 'salt'], null],
  groupIndex: 1,
  specKind: 'sliding_window',
  slidingWindow: 64,
  locality: 'LOCAL',
};

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');
const inArrayForm = (event: VllmEvent) => {
  const writer = new MsgpackWriter();
  writeEvent(writer, event, 'array');
  return decode(writer.finish(), { useBigInt64: true });
};

describe('in map form', () => {
  test('a store, a removal and a clear are the bytes that vLLM writes', () => {
    expect(hex(encodeVllmBatch([stored, removed, cleared], { timestamp: 1.5, dataParallelRank: 0 }))).toBe(GOLDEN_A);
  });

  test('a store with every field is the bytes that vLLM writes', () => {
    expect(hex(encodeVllmBatch([rich], { timestamp: 1.5, dataParallelRank: 1 }))).toBe(GOLDEN_B);
  });

  test('a batch has three elements also without a rank, and its time is a float even when it is whole', () => {
    const bytes = encodeVllmBatch([], { timestamp: 2 });
    expect(hex(bytes)).toBe('93cb400000000000000090c0');
  });
});

describe('in array form', () => {
  test('a store of old is the bytes that vLLM wrote', () => {
    const { groupIndex: _, specKind: __, ...old } = stored;
    const writer = new MsgpackWriter();
    writeEvent(writer, { ...old, blockHashes: [1n], tokenIds: [1, 2], blockSize: 2 }, 'array');
    expect(hex(writer.finish())).toBe(GOLDEN_C);
  });

  test('a store with later fields has all four of them, in their places', () => {
    expect(inArrayForm(stored)).toEqual([
      'BlockStored',
      [hash],
      null,
      [1, 2, 3, 4],
      4,
      null,
      'GPU',
      null,
      null,
      0,
      'full_attention',
      null,
      null,
    ]);
    expect((inArrayForm(rich) as unknown[]).slice(8)).toEqual([
      [['ad', ['img', -2], 'salt'], null],
      1,
      'sliding_window',
      64,
      'LOCAL',
    ]);
  });

  test('a removal ends with its group, or with the same four places', () => {
    expect(inArrayForm(removed)).toEqual(['BlockRemoved', [hash], 'GPU', 0]);
    expect(inArrayForm({ ...removed, locality: 'REMOTE' })).toEqual(['BlockRemoved', [hash], 'GPU', 0, null, null, 'REMOTE']);
  });

  test('a clear is its name', () => {
    expect(inArrayForm(cleared)).toEqual(['AllBlocksCleared']);
  });
});
