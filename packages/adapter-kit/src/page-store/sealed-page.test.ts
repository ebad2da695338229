/// <reference types="node" />
import { expect, test } from 'vitest';
import { openSealedPage, SEAL_BYTES, sealPage } from './sealed-page.ts';

const page = Uint8Array.from({ length: 37 }, (_, i) => i * 7);

test('gives back what was sealed, also when it lies inside of other bytes', () => {
  const sealed = sealPage('some-key', page);
  expect(sealed.length).toBe(page.length + SEAL_BYTES);
  expect([...(openSealedPage('some-key', sealed) ?? [])]).toEqual([...page]);
  const around = new Uint8Array(sealed.length + 9);
  around.set(sealed, 5);
  expect([...(openSealedPage('some-key', around.subarray(5, 5 + sealed.length)) ?? [])]).toEqual([...page]);
  expect(openSealedPage('empty', sealPage('empty', new Uint8Array(0)))).toHaveLength(0);
});

test('gives a plain view, whose slice is a copy, also of a Buffer', () => {
  const sealed = Buffer.from(sealPage('some-key', page));
  const opened = openSealedPage('some-key', sealed);
  opened?.slice().fill(0);
  expect(Buffer.isBuffer(opened)).toBe(false);
  expect([...(openSealedPage('some-key', sealed) ?? [])]).toEqual([...page]);
});

test('opens under no other key', () => {
  expect(openSealedPage('some-kez', sealPage('some-key', page))).toBeNull();
  expect(openSealedPage('a', sealPage('a\0b', page))).toBeNull();
});

test('opens for no flipped bit, wherever it is', () => {
  const sealed = sealPage('some-key', page);
  for (let bit = 0; bit < sealed.length * 8; bit++) {
    const flipped = sealed.slice();
    flipped[bit >> 3] ^= 1 << (bit & 7);
    expect(openSealedPage('some-key', flipped), `bit ${bit}`).toBeNull();
  }
});

test('opens for nothing that was cut or grew', () => {
  const sealed = sealPage('some-key', page);
  for (let length = 0; length < sealed.length; length++) {
    expect(openSealedPage('some-key', sealed.subarray(0, length))).toBeNull();
  }
  const longer = new Uint8Array(sealed.length + 1);
  longer.set(sealed);
  expect(openSealedPage('some-key', longer)).toBeNull();
});
