import { describe, expect, test } from 'vitest';
import { blockKeys } from '../tree/block-key.ts';
import { keyToLeadingU64 } from './block-hash.ts';
import { v1BlockHashes } from './v1-block-hash.ts';

const tokens = [1, 2, 3, 4, 5, 6];

describe('hashes of the older kind', () => {
  test('are those that TensorRT-LLM has', () => {
    expect(v1BlockHashes(tokens, undefined, 4)).toEqual([924206229973855n, 6875034662206558884n]);
  });

  test('have the salt of their scope in them', () => {
    expect(v1BlockHashes(tokens, { salt: 123 }, 4)).toEqual([6280297290684427985n, 18177682803760873588n]);
  });

  test('have the LoRA of their scope in every block', () => {
    const plain = v1BlockHashes(tokens, {}, 4);
    const lora = v1BlockHashes(tokens, { loraId: 5 }, 4);
    expect([lora[0] === plain[0], lora[1] === plain[1]]).toEqual([false, false]);
    expect(lora).not.toEqual(v1BlockHashes(tokens, { salt: 5 }, 4));
  });

  test('of a child are the same whether or not the parent is still there: they follow from the tokens', () => {
    expect(v1BlockHashes(tokens, undefined, 4)[1]).toBe(v1BlockHashes([...tokens.slice(0, 4), 5, 6], undefined, 4)[1]);
  });

  test('are the beginning of the key from the first block with a digest on', () => {
    const mixed = [1, 2, 3, 4, 5, new Uint8Array(32).fill(1), 7, 8, 9];
    const keys = blockKeys(mixed, {}, 4);
    expect(v1BlockHashes(mixed, {}, 4)).toEqual([924206229973855n, keyToLeadingU64(keys[1]), keyToLeadingU64(keys[2])]);
  });
});
