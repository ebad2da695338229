import { expect, test } from 'vitest';
import { nodeComplaint } from './node-version.mjs';

test('the oldest supported Node and every newer one may run', () => {
  expect(['20.19.0', '20.20.2', '22.0.0', '100.1.0'].map(nodeComplaint)).toEqual([undefined, undefined, undefined, undefined]);
});

test('an older Node is told which one is needed and which one it is', () => {
  expect(nodeComplaint('20.18.3')).toContain('20.19 or newer, this is 20.18.3');
  expect(nodeComplaint('18.20.0')).toContain('20.19 or newer, this is 18.20.0');
});
