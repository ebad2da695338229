/// <reference types="node" />

import { readFileSync } from 'node:fs';

/** The published vector files, by name. `vectors/README.md` tells the shape of their cases. */
export type VectorName = 'layout' | 'ranges' | 'convert' | 'reuse' | 'reuse-scratch';

/**
 * All cases of a vector file, in file order.
 * @typeParam Case the shape of one case, as far as the test looks at it
 */
export function readVectors<Case>(name: VectorName): Case[] {
  const text = readFileSync(new URL(`../vectors/${name}.jsonl`, import.meta.url), 'utf8');
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Case);
}
