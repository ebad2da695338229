import { expect, it } from 'vitest';
import { formatBytes, formatCount, formatCounted, formatExactBytes } from './units.ts';

it('bytes come in the largest unit of which there is at least one', () => {
  expect([0, 1, 1023, 1024, 1536, 24576].map(formatBytes)).toEqual(['0 B', '1 B', '1,023 B', '1 KiB', '1.5 KiB', '24 KiB']);
  expect([2 ** 20 - 1, 2 ** 20, 3 * 2 ** 30, 5 * 2 ** 40].map(formatBytes)).toEqual(['1 MiB', '1 MiB', '3 GiB', '5 TiB']);
  expect([12.5, 1000 / 3, 1023.999].map(formatBytes)).toEqual(['12.5 B', '333.33 B', '1 KiB']);
  expect(formatBytes(2 ** 60)).toBe('1,024 PiB');
});

it('thousands are parted, and one is one', () => {
  expect([0, 999, 1000, 1234567, 1234.5].map(formatCount)).toEqual(['0', '999', '1,000', '1,234,567', '1,234.5']);
  expect([formatCounted(1, 'page'), formatCounted(2000, 'page'), formatCounted(0, 'page')]).toEqual([
    '1 page',
    '2,000 pages',
    '0 pages',
  ]);
});

it('bytes that are compared are never rounded', () => {
  expect([16384, 16388, 1536, 2 ** 20 - 1].map(formatExactBytes)).toEqual(['16 KiB', '16,388 B', '1.5 KiB', '1,048,575 B']);
});
