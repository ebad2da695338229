import { useComputed, useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { TreeFrame } from '../../protocol/tree-frame.ts';
import { groups, selectedBlock, tree } from '../../state/store.ts';
import { counted, groupHue, listed } from '../../story/names.ts';
import { type Run, treeRuns } from '../../tree/runs.ts';
import { TreeItem } from './tree-item.tsx';

/** Runs that are shown, of all levels. */
const MAX_RUNS = 150;
/** Blocks of a run that are listed when it is open, and that its strip has. */
const MAX_BLOCKS = 400;
const MAX_STRIP = 64;

/** The radix tree: what was published, and where texts part. */
export function TreePanel() {
  const runs = useComputed(() => (tree.value === null ? [] : treeRuns(tree.value)));
  const open = useSignal<ReadonlySet<number>>(new Set());
  const box = useRef<HTMLDivElement>(null);
  const { value: shown } = tree;
  const { value: chosen } = selectedBlock;
  useEffect(() => {
    // A block that was chosen in the map is shown: its run opens, and comes into view.
    if (chosen === null || shown === null) return;
    const run = findRun(runs.peek(), shown, chosen);
    if (run !== null && !open.peek().has(run.id)) open.value = new Set(open.peek()).add(run.id);
    requestAnimationFrame(() => box.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest' }));
  }, [chosen]);
  if (shown === null || shown.numBlocks === 0) return <p class="quiet empty">Nothing is published yet: the tree is empty.</p>;
  let left = MAX_RUNS;
  const toggle = (id: number) => {
    const next = new Set(open.value);
    if (!next.delete(id)) next.add(id);
    open.value = next;
  };
  const render = (run: Run, level: number): ComponentChildren => {
    if (left-- <= 0) return null;
    const isOpen = open.value.has(run.id);
    return (
      <RunItem key={run.id} run={run} tree={shown} level={level} isOpen={isOpen} toggle={() => toggle(run.id)}>
        {run.children.map((child) => render(child, level + 1))}
      </RunItem>
    );
  };
  const items = runs.value.map((run) => render(run, 1));
  return (
    <div class="tree">
      <p class="quiet">
        {counted(shown.numBlocks, 'block')} in {counted(runs.value.length, 'beginning')}. Where texts part, the tree forks. A
        strip has a column for each block, and a row for each group that has a page of it.
      </p>
      <div role="tree" aria-label="Published blocks" ref={box}>
        {items}
      </div>
      {(left < 0 || shown.omitted > 0) && <p class="quiet">There is more than can be shown.</p>}
    </div>
  );
}

interface RunProps {
  run: Run;
  tree: TreeFrame;
  level: number;
  isOpen: boolean;
  toggle: () => void;
  children: ComponentChildren;
}

function RunItem({ run, tree: shown, level, isOpen, toggle, children }: RunProps) {
  return (
    <TreeItem kind="run" level={level} isOpen={isOpen} choose={toggle}>
      <div class="run-line">
        <q>{textOf(run.blocks, shown)}</q>
        <Strip run={run} tree={shown} />
        <small>
          {counted(run.blocks.length, 'block')}, {counted(run.numTokens, 'token')}
        </small>
      </div>
      {(isOpen || run.children.length > 0) && (
        // biome-ignore lint/a11y/useSemanticElements: a group inside of a tree has no element of its own.
        <div role="group">
          {isOpen &&
            run.blocks
              .slice(0, MAX_BLOCKS)
              .map((position) => <BlockItem key={shown.block[position]} position={position} tree={shown} level={level + 1} />)}
          {children}
        </div>
      )}
    </TreeItem>
  );
}

function BlockItem({ position, tree: shown, level }: { position: number; tree: TreeFrame; level: number }) {
  const id = shown.block[position];
  const chosen = selectedBlock.value === id;
  const owners = groups.value.filter((group) => (shown.groups[position] >>> group.id) & 1);
  const choose = () => {
    selectedBlock.value = chosen ? null : id;
  };
  return (
    <TreeItem kind="block" level={level} isChosen={chosen} choose={choose}>
      <span class="ordinal">{shown.ordinal[position]}</span>
      <span class="words">{shown.texts[position].replaceAll('\n', ' ')}</span>
      <span class="dots" title={`Pages of ${listed(owners.map(({ name }) => name.toLowerCase()))}`}>
        {owners.map((group) => (
          <i key={group.id} style={{ '--hue': groupHue(group.id) }} />
        ))}
      </span>
    </TreeItem>
  );
}

/** A row for each group, a column for each block. */
function Strip({ run, tree: shown }: { run: Run; tree: TreeFrame }) {
  const rows = groups.value.filter(({ policy }) => policy !== 'private');
  const columns = run.blocks.slice(0, MAX_STRIP);
  const [width, height] = [columns.length * 5, rows.length * 5];
  return (
    <svg class="strip" viewBox={`0 0 ${width} ${height}`} width={width} height={height} aria-hidden="true">
      {columns.map((position, x) =>
        rows.map(({ id }, y) => {
          const isThere = (shown.groups[position] >>> id) & 1;
          const fill = isThere ? groupHue(id) : 'var(--cell-free)';
          return <rect key={`${position} ${id}`} x={x * 5} y={y * 5} width={4} height={4} rx={1} fill={fill} />;
        }),
      )}
    </svg>
  );
}

function textOf(blocks: readonly number[], { texts }: TreeFrame): string {
  const text = blocks
    .slice(0, 8)
    .map((block) => texts[block])
    .join('')
    .replaceAll(/\s+/g, ' ')
    .trim();
  return text.length > 90 || blocks.length > 8 ? `${text.slice(0, 90)}…` : text;
}

function findRun(runs: readonly Run[], shown: TreeFrame, block: number): Run | null {
  const position = shown.block.indexOf(block);
  const waiting = [...runs];
  for (let run = waiting.pop(); run !== undefined; run = waiting.pop()) {
    if (run.blocks.includes(position)) return run;
    waiting.push(...run.children);
  }
  return null;
}
