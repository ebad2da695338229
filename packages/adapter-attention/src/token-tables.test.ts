import type { StepRequest } from '@bufferwise/adapter-kit';
import type { LayerGroupId } from '@bufferwise/core-policy';
import type { ComputeStep } from '@bufferwise/gpu-kernels';
import { expect, test } from 'vitest';
import { isMasked, TokenTables } from './token-tables.ts';

const GROUP = 1 as LayerGroupId;
const OTHER = 2 as LayerGroupId;

/** Answers an upload with what was uploaded. */
const compute = { upload: (data: Int32Array | Uint32Array) => [...data] } as unknown as ComputeStep;

const request = (start: number, numTokens: number, matched = 0, ...groups: LayerGroupId[]): StepRequest => ({
  start,
  numTokens,
  matched,
  reusedGroups: new Set(groups),
});

test('rows of requests stand one behind the other', () => {
  expect(new TokenTables().upload(compute, [request(5, 1), request(0, 3), request(2, 2)])).toEqual({
    numTokens: 6,
    numRequests: 3,
    queryStart: [0, 1, 4, 6],
    contextLength: [6, 3, 4],
    maxContextLength: 6,
    places: [0, 5, 1, 0, 1, 1, 1, 2, 2, 2, 2, 3],
  });
});

test('a step without requests has no tokens', () => {
  expect(new TokenTables().upload(compute, [])).toMatchObject({ numTokens: 0, queryStart: [0], places: [] });
});

test('large steps do as small ones', () => {
  const tables = new TokenTables();
  const requests = Array.from({ length: 300 }, (_, i) => request(i, 2, i + 1, GROUP));
  const { numTokens, places, queryStart } = tables.upload(compute, requests);
  expect(numTokens).toBe(600);
  expect([...(queryStart as unknown as number[])].at(-1)).toBe(600);
  expect([...(places as unknown as number[])].slice(-4)).toEqual([299, 299, 299, 300]);
  const { runs } = tables.uploadMasked(compute, requests, numTokens, GROUP);
  expect(runs.numRuns).toBe(600);
  expect([...(runs.contextLength as unknown as number[])].slice(-2)).toEqual([300, 301]);
});

test('tokens that a group holds are not written, and its request is cut where the match ends', () => {
  const requests = [request(0, 2, 2, OTHER), request(1, 4, 3, GROUP), request(3, 2, 3, GROUP), request(0, 3, 8, GROUP)];
  const { places, runs } = new TokenTables().uploadMasked(compute, requests, 11, GROUP);
  expect(places).toEqual([0, 0, 0, 1, -1, 1, -1, 2, 1, 3, 1, 4, 2, 3, 2, 4, -1, 0, -1, 1, -1, 2]);
  expect(runs).toEqual({
    numRuns: 5,
    requestOf: [0, -1, 1, 2, -1],
    queryStart: [0, 2, 4, 6, 8, 11],
    // Runs of a request end where it does, those of nobody where the match does or the step.
    contextLength: [2, 3, 5, 5, 3],
  });
});

test('a group is masked when a request gives tokens again that it holds', () => {
  expect(isMasked([request(0, 4), request(3, 1, 3, GROUP)], GROUP)).toBe(false);
  expect(isMasked([request(0, 4), request(2, 1, 3, GROUP)], GROUP)).toBe(true);
  expect(isMasked([request(0, 4), request(2, 1, 3, GROUP)], OTHER)).toBe(false);
});
