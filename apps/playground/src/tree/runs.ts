import type { TreeFrame } from '../protocol/tree-frame.ts';

/** A run of blocks without a fork in between: one node of the radix tree as it is shown. */
export interface Run {
  /** Id of its first block, which names it. */
  readonly id: number;
  /** Positions of its blocks in the frame, one behind the other. */
  readonly blocks: readonly number[];
  readonly numTokens: number;
  readonly children: readonly Run[];
}

/** The radix tree with blocks in runs: where texts part, a run ends. Children come in the order of the frame. */
export function treeRuns(tree: TreeFrame): Run[] {
  const children: number[][] = Array.from({ length: tree.numBlocks }, () => []);
  const roots: number[] = [];
  for (let at = 0; at < tree.numBlocks; at++) {
    if (tree.parent[at] < 0) roots.push(at);
    else children[tree.parent[at]].push(at);
  }
  // Parents come before their children, so that from the end on all children are known: a sequence may be deeper than a stack.
  const runs: (Run | undefined)[] = new Array(tree.numBlocks);
  for (let at = tree.numBlocks - 1; at >= 0; at--) {
    const isFirst = tree.parent[at] < 0 || children[tree.parent[at]].length > 1;
    if (!isFirst) continue;
    const blocks = [at];
    let last = at;
    while (children[last].length === 1) {
      last = children[last][0];
      blocks.push(last);
    }
    runs[at] = {
      id: tree.block[at],
      blocks,
      numTokens: blocks.reduce((sum, block) => sum + tree.numTokens[block], 0),
      children: children[last].map((child) => runs[child] as Run),
    };
  }
  return roots.map((root) => runs[root] as Run);
}
