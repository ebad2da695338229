import type { StepRequest } from '@bufferwise/adapter-kit';
import { expect, test } from 'vitest';
import { partsOf, runsOf } from './step-parts.ts';

const request = (start: number, numTokens: number, matched: number): StepRequest => ({
  start,
  numTokens,
  matched,
  reusedGroups: new Set(),
});

test('tokens before the match are a part of their own where the page was reused', () => {
  const requests = [request(5, 2, 5), request(1, 9, 4)];
  expect(partsOf(requests, () => true)).toEqual([
    { request: 0, firstToken: 0, numTokens: 2, position: 5, page: 'own' },
    { request: 1, firstToken: 2, numTokens: 3, position: 1, page: 'aside' },
    { request: 1, firstToken: 5, numTokens: 6, position: 4, page: 'own' },
  ]);
  expect(partsOf(requests, () => false)).toEqual([
    { request: 0, firstToken: 0, numTokens: 2, position: 5, page: 'own' },
    { request: 1, firstToken: 2, numTokens: 9, position: 1, page: 'own' },
  ]);
});

test('a step that ends before or at the match has nothing for the page', () => {
  for (const numTokens of [3, 4, 5]) {
    const pages = partsOf([request(0, numTokens, 4)], () => true).map(({ page }) => page);
    expect(pages).toEqual(numTokens === 5 ? ['aside', 'own'] : ['aside']);
  }
});

test('runs are neighbours of one kind, in their order', () => {
  const parts = partsOf(
    [1, 2, 3, 4].map((numTokens) => request(7, numTokens, 7)),
    () => true,
  );
  const runs = runsOf(parts, ({ numTokens }) => (numTokens === 2 ? undefined : numTokens > 2));
  expect(runs.map((run) => run.map(({ numTokens }) => numTokens))).toEqual([[1], [2], [3, 4]]);
  expect(runsOf([], () => true)).toEqual([]);
});
