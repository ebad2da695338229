import { expect, it } from 'vitest';
import { BYTE_ALPHABET, bytesOfToken } from './byte-alphabet.ts';

it('every byte has a character of its own, and the way back leads to it', () => {
  expect(new Set(BYTE_ALPHABET).size).toBe(256);
  BYTE_ALPHABET.forEach((character, byte) => {
    expect(bytesOfToken(character)).toEqual(Uint8Array.of(byte));
  });
});

it('a space is written Ġ and a line break Ċ', () => {
  expect(BYTE_ALPHABET[32]).toBe('Ġ');
  expect(BYTE_ALPHABET[10]).toBe('Ċ');
  expect(bytesOfToken('Ġsea')).toEqual(Uint8Array.of(32, 115, 101, 97));
});

it('a token with any other character stands for no bytes', () => {
  expect(bytesOfToken('a b')).toBeNull();
  expect(bytesOfToken('海')).toBeNull();
});
