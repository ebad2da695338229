import { expect, test } from 'vitest';
import type { TreeFrame } from '../protocol/tree-frame.ts';
import { type Run, treeRuns } from './runs.ts';

/** A tree of blocks with 16 tokens; ids are 100, 101, … */
function treeOf(parents: readonly number[]): TreeFrame {
  return {
    numBlocks: parents.length,
    block: Int32Array.from(parents, (_, i) => 100 + i),
    parent: Int32Array.from(parents),
    ordinal: new Uint32Array(parents.length),
    numTokens: new Uint16Array(parents.length).fill(16),
    groups: new Uint32Array(parents.length),
    texts: parents.map(() => ''),
    omitted: 0,
  };
}

const shape = (runs: readonly Run[]): unknown[] => runs.map(({ blocks, children }) => [blocks, ...shape(children)]);

test('blocks without a fork in between are one run', () => {
  const [run, ...others] = treeRuns(treeOf([-1, 0, 1, 2]));
  expect(others).toEqual([]);
  expect(run).toEqual({ id: 100, blocks: [0, 1, 2, 3], numTokens: 64, children: [] });
});

test('a run ends where texts part', () => {
  expect(shape(treeRuns(treeOf([-1, 0, 1, 2, 1, 4, -1])))).toEqual([[[0, 1], [[2, 3]], [[4, 5]]], [[6]]]);
});

test('a run may be longer than a call stack', () => {
  const length = 50_000;
  expect(treeRuns(treeOf(Array.from({ length }, (_, i) => i - 1)))[0].blocks.length).toBe(length);
});

test('without blocks there are no runs', () => {
  expect(treeRuns(treeOf([]))).toEqual([]);
});
