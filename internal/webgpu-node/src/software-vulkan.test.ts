import { expect, test } from 'vitest';
import { withFolder } from './software-vulkan.ts';

test('a folder is put in front of a list once', () => {
  expect(withFolder('/a', undefined)).toBe('/a');
  expect(withFolder('/a', '')).toBe('/a');
  expect(withFolder('/a', '/b:/c')).toBe('/a:/b:/c');
  expect(withFolder('/a', '/b:/a')).toBe('/a:/b');
});
