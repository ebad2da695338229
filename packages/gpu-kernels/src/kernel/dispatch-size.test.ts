import fc from 'fast-check';
import { expect, test } from 'vitest';
import { foldWorkgroups } from './dispatch-size.ts';

test('a row that one dimension holds stays a row', () => {
  expect(foldWorkgroups(0, 65_535)).toEqual([0, 0, 1]);
  expect(foldWorkgroups(1, 65_535)).toEqual([1, 1, 1]);
  expect(foldWorkgroups(65_535, 65_535)).toEqual([65_535, 1, 1]);
});

test('a longer row goes over two dimensions', () => {
  expect(foldWorkgroups(65_536, 65_535)).toEqual([32_768, 2, 1]);
});

test('a row that two dimensions cannot hold is refused', () => {
  expect(foldWorkgroups(16, 4)).toEqual([4, 4, 1]);
  expect(foldWorkgroups(17, 4)).toBeUndefined();
});

test('every wanted workgroup is launched, and fewer surplus ones than there are rows', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 10_000 }), fc.integer({ min: 100, max: 300 }), (wanted, most) => {
      const [x, y, z] = foldWorkgroups(wanted, most) as [number, number, number];
      expect(Math.max(x, y)).toBeLessThanOrEqual(most);
      expect(z).toBe(1);
      expect(x * y - wanted).toBeGreaterThanOrEqual(0);
      expect(x * y - wanted).toBeLessThan(y);
    }),
  );
});
