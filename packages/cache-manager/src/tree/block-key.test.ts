import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { seq } from '../../test/support/stage.ts';
import { keyToHex } from '../events/block-hash.ts';
import { blockKey, blockKeys, rootKey, sameKey } from './block-key.ts';
import type { MultimodalDigest } from './token-seq.ts';

const KEY_0123 = '7b894451a88bc03088bd0c44f01139922b089a1ab691d157c273185c78ca83b2';
const KEY_4567 = '181684b4f09a9fc1689624a565bc5c9ed96cede3e0863cf373463b1a93c45369';
const KEY_45 = '5d66d4fdf7d16368dac24c64a9fb15e1e0d36dd5c702976f1db79a211bcfae2f';

describe('the key of a scope', () => {
  test('without LoRA and salt is that of no scope', () => {
    expect(keyToHex(rootKey())).toBe('6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d');
    expect(rootKey({})).toEqual(rootKey());
  });

  test('has LoRA and salt in it', () => {
    expect(keyToHex(rootKey({ loraId: 7, salt: 11 }))).toMatch(/^9e22dbfe.*5513d3a3$/);
    expect(keyToHex(rootKey({ salt: 11n }))).toMatch(/^1fbaa6fe.*2a57dd1$/);
  });

  test('is another for every scope that is another', () => {
    const scopes = [
      {},
      { loraId: 7 },
      { salt: 7 },
      { loraId: 7, salt: 11 },
      { loraId: 11, salt: 7 },
      { loraId: 0 },
      { salt: 0 },
      { loraId: 2n ** 64n - 1n },
    ];
    expect(new Set(scopes.map((scope) => keyToHex(rootKey(scope)))).size).toBe(scopes.length);
  });

  test('is of unsigned 64-bit integers only', () => {
    expect(() => rootKey({ salt: -1 })).toThrow(expect.objectContaining({ code: 'invalid-scope' }));
    expect(() => rootKey({ loraId: 2n ** 64n })).toThrow(expect.objectContaining({ code: 'invalid-scope' }));
  });
});

describe('the keys of a text', () => {
  test('are chained from block to block', () => {
    expect(blockKeys(seq(8), undefined, 4).map(keyToHex)).toEqual([KEY_0123, KEY_4567]);
  });

  test('end with that of a partial block', () => {
    expect(blockKeys(seq(6), {}, 4).map(keyToHex)).toEqual([KEY_0123, KEY_45]);
    expect(blockKeys(seq(4), {}, 4).map(keyToHex)).toEqual([KEY_0123]);
    expect(blockKeys([], {}, 4)).toEqual([]);
  });

  test('are the same for tokens in any kind of list', () => {
    expect(blockKeys(Uint32Array.from(seq(8)), {}, 4)).toEqual(blockKeys(seq(8), {}, 4));
    expect(blockKeys(Int32Array.from(seq(8)), {}, 4)).toEqual(blockKeys(seq(8), {}, 4));
  });

  test('are built block by block just as well', () => {
    expect(keyToHex(blockKey(blockKey(rootKey(), seq(4)), [4, 5]))).toBe(KEY_45);
  });

  test('have whole 32-bit tokens, low byte first', () => {
    const [key] = blockKeys([0xffffffff, 0x01020304], {}, 4);
    const bytes = Buffer.concat([rootKey(), Buffer.from('ffffffff04030201', 'hex')]);
    expect(Buffer.from(key)).toEqual(createHash('sha256').update(bytes).digest());
  });

  test('have all 32 bytes of a digest where it stands', () => {
    const digest = Uint8Array.from({ length: 32 }, (_, i) => i + 100);
    const [, key] = blockKeys([0, 1, 2, 3, 4, digest, 6], {}, 4);
    const bytes = Buffer.concat([
      blockKeys(seq(4), {}, 4)[0],
      Buffer.from('04000000', 'hex'),
      digest,
      Buffer.from('06000000', 'hex'),
    ]);
    expect(Buffer.from(key)).toEqual(createHash('sha256').update(bytes).digest());
  });

  test('are others under another scope, from the first block on', () => {
    const ours = blockKeys(seq(8), { salt: 1 }, 4).map(keyToHex);
    const theirs = blockKeys(seq(8), { loraId: 1 }, 4).map(keyToHex);
    expect(new Set([...ours, ...theirs]).size).toBe(4);
  });

  test('are of blocks of one token at least', () => {
    for (const size of [0, -1, 1.5, Number.NaN]) {
      expect(() => blockKeys(seq(8), {}, size)).toThrow(expect.objectContaining({ code: 'invalid-tokens-per-block' }));
    }
  });

  test('are those of anybody who hashes the same bytes', () => {
    const token = fc.oneof(fc.nat(), fc.uint8Array({ minLength: 32, maxLength: 32 }));
    fc.assert(
      fc.property(fc.array(token, { maxLength: 30 }), fc.integer({ min: 1, max: 9 }), (tokens, tokensPerBlock) => {
        let parent = createHash('sha256').update(Uint8Array.of(0)).digest();
        const expected: string[] = [];
        for (let begin = 0; begin < tokens.length; begin += tokensPerBlock) {
          const hash = createHash('sha256').update(parent);
          for (const each of tokens.slice(begin, begin + tokensPerBlock)) hash.update(bytesOf(each));
          parent = hash.digest();
          expected.push(parent.toString('hex'));
        }
        expect(blockKeys(tokens, undefined, tokensPerBlock).map(keyToHex)).toEqual(expected);
      }),
    );
  });
});

function bytesOf(token: number | MultimodalDigest): Uint8Array {
  if (typeof token !== 'number') return token;
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(token);
  return bytes;
}

test('two keys are the same when all their bytes are', () => {
  const [a, b] = blockKeys(seq(8), {}, 4);
  expect([sameKey(a, a.slice()), sameKey(a, b), sameKey(null, null), sameKey(a, null)]).toEqual([true, false, true, false]);
});
