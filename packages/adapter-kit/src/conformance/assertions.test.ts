/// <reference types="node" />
import { expect, test } from 'vitest';
import { ensureEqual } from './assertions.ts';

test('a Buffer is equal to the bytes that are in it, wherever it stands', () => {
  ensureEqual(Buffer.of(1, 2), Uint8Array.of(1, 2), 'bytes');
  ensureEqual([null, Buffer.of(1, 2)], [null, Uint8Array.of(1, 2)], 'a list');
  expect(() => ensureEqual([Buffer.of(1, 3)], [Uint8Array.of(1, 2)], 'a list')).toThrow('a list: expected [[1,2]], got [[1,3]]');
});
