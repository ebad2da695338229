import { expect, test } from 'vitest';
import { paramText } from './param-text.ts';

test('fields have the order in which they are packed', () => {
  expect(paramText({ numRows: 'u32', first: 'i32', scale: 'f32' })).toBe(
    'struct Params {\n  numRows: u32,\n  first: i32,\n  scale: f32,\n}',
  );
});
