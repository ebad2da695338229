import { expect, test } from 'vitest';
import { ReplayCursors } from './replay-cursors.ts';

const ring = { rows: 8, maxTokens: 3 };
const request = {};

test('a sequence that was never seen has nothing in its ring', () => {
  expect(new ReplayCursors(ring).at(request, 12, 5)).toEqual({ position: 12, length: 0 });
});

test('where the next step begins tells how many tokens of the last were kept', () => {
  for (const kept of [0, 1, 2, 3]) {
    const cursors = new ReplayCursors(ring);
    cursors.replayed(request, { position: 12, length: 2 }, 3);
    expect(cursors.at(request, 12 + kept, 5)).toEqual({ position: 12 + kept, length: 2 + kept });
  }
});

test('a step that settles leaves its own tokens in the ring', () => {
  const cursors = new ReplayCursors(ring);
  cursors.replayed(request, { position: 12, length: 4 }, 2);
  expect(cursors.at(request, 13, 5)).toEqual({ position: 13, length: 1 });
});

test('nothing beyond the last step can be taken back or left out', () => {
  const cursors = new ReplayCursors(ring);
  cursors.replayed(request, { position: 12, length: 2 }, 3);
  expect(cursors.at(request, 11, 5)).toBeUndefined();
  expect(cursors.at(request, 16, 5)).toBeUndefined();
  cursors.wrote(request, 20);
  expect(cursors.at(request, 20, 5)).toEqual({ position: 20, length: 0 });
  expect(cursors.at(request, 19, 5)).toBeUndefined();
});

test('a request that begins at its match again, as after the loss of a device, begins with an empty ring', () => {
  const cursors = new ReplayCursors(ring);
  cursors.replayed(request, { position: 12, length: 2 }, 3);
  expect(cursors.at(request, 13, 13)).toEqual({ position: 13, length: 0 });
  expect(cursors.at(request, 0, 0)).toEqual({ position: 0, length: 0 });
});
