import { useComputed, useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { TreeFrame } from '../../protocol/tree-frame.ts';
import { groups, selectedBlock, tree } from '../../state/store.ts';
import { counted, listed } from '../../story/names.ts';
import { type Run, treeRuns } from '../../tree/runs.ts';

/** Runs that are shown, of all levels. */
const MAX_RUNS = 150;

/** Blocks of a run that are listed, when it is open. */
const MAX_BLOCKS = 400;

/** The radix tree: what was published, and where texts part. */
export function TreePanel() {
  const runs = useComputed(() => (tree.value === null ? [] : treeRuns(tree.value)));
  const open = useSignal<ReadonlySet<number>>(new Set());
  const box = useRef<HTMLUListElement>(null);
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
  const left = { runs: MAX_RUNS };
  const toggle = (id: number) => {
    const next = new Set(open.value);
    if (!next.delete(id)) next.add(id);
    open.value = next;
  };
  const render = (run: Run, level: number) => {
    if (left.runs-- <= 0) return null;
    return (
      <RunItem
        key={run.id}
        run={run}
        tree={shown}
        level={level}
        isOpen={open.value.has(run.id)}
        toggle={toggle}
        render={render}
        open={open.value}
      />
    );
  };
  return (
    <div class="tree">
      <p class="quiet">
        {counted(shown.numBlocks, 'block')} in {counted(runs.value.length, 'beginning')}. A line is text that nobody has left yet;
        where texts part, it forks. The strips show which groups have a page of each block.
      </p>
      <ul role="tree" aria-label="Published blocks" ref={box} onKeyDown={(event) => moveFocus(event, box.current)}>
        {runs.value.map((run) => render(run, 1))}
      </ul>
      {left.runs < 0 && <p class="quiet">More than {MAX_RUNS} runs: the rest is not shown.</p>}
    </div>
  );
}

function RunItem({
  run,
  tree: shown,
  level,
  isOpen,
  toggle,
  render,
}: {
  run: Run;
  tree: TreeFrame;
  level: number;
  isOpen: boolean;
  open: ReadonlySet<number>;
  toggle: (id: number) => void;
  render: (run: Run, level: number) => preact.ComponentChildren;
}) {
  const text = textOf(run.blocks, shown);
  return (
    <li
      role="treeitem"
      aria-level={level}
      aria-expanded={isOpen}
      aria-selected={false}
      tabIndex={level === 1 ? 0 : -1}
      class="run"
      onClick={(event) => {
        event.stopPropagation();
        toggle(run.id);
      }}
    >
      <div class="run-line">
        <q>{text}</q>
        <Strip run={run} tree={shown} />
        <small>
          {counted(run.blocks.length, 'block')}, {counted(run.numTokens, 'token')}
        </small>
      </div>
      {(isOpen || run.children.length > 0) && (
        // biome-ignore lint/a11y/useSemanticElements: a group inside of a tree.
        <ul role="group">
          {isOpen &&
            run.blocks
              .slice(0, MAX_BLOCKS)
              .map((position) => <BlockItem key={shown.block[position]} position={position} tree={shown} level={level + 1} />)}
          {run.children.map((child) => render(child, level + 1))}
        </ul>
      )}
    </li>
  );
}

function BlockItem({ position, tree: shown, level }: { position: number; tree: TreeFrame; level: number }) {
  const id = shown.block[position];
  const chosen = selectedBlock.value === id;
  const names = groups.value.filter((group) => (shown.groups[position] >>> group.id) & 1);
  return (
    <li
      role="treeitem"
      aria-level={level}
      aria-selected={chosen}
      tabIndex={-1}
      class="block"
      onClick={(event) => {
        event.stopPropagation();
        selectedBlock.value = chosen ? null : id;
      }}
    >
      <span class="ordinal">{shown.ordinal[position]}</span>
      <span class="words">{shown.texts[position].replaceAll('\n', ' ')}</span>
      <span class="dots" title={`Pages of ${listed(names.map(({ name }) => name.toLowerCase()))}`}>
        {names.map((group) => (
          <i key={group.id} style={{ '--hue': `var(--hue-${group.id % 8})` }} />
        ))}
      </span>
    </li>
  );
}

/** A row for each group, a column for each block. */
function Strip({ run, tree: shown }: { run: Run; tree: TreeFrame }) {
  const { value: all } = groups;
  const columns = run.blocks.slice(0, 64);
  return (
    <svg
      class="strip"
      viewBox={`0 0 ${columns.length * 5} ${all.length * 5}`}
      width={columns.length * 5}
      height={all.length * 5}
      aria-hidden="true"
    >
      {columns.map((position, x) =>
        all.map(({ id }, y) =>
          (shown.groups[position] >>> id) & 1 ? (
            <rect key={`${position} ${id}`} x={x * 5} y={y * 5} width={4} height={4} rx={1} fill={`var(--hue-${id % 8})`} />
          ) : null,
        ),
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

/** Arrows go through the items that are shown; left and right close and open them, Enter chooses. */
function moveFocus(event: KeyboardEvent, box: HTMLElement | null): void {
  const items = [...(box?.querySelectorAll<HTMLElement>('[role="treeitem"]') ?? [])];
  const at = items.indexOf(document.activeElement as HTMLElement);
  if (at < 0) return;
  const item = items[at];
  const expanded = item.getAttribute('aria-expanded');
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
  if (to !== undefined) {
    event.preventDefault();
    items[Math.min(items.length - 1, Math.max(0, to))].focus();
  } else if (
    event.key === 'Enter' ||
    event.key === ' ' ||
    (event.key === 'ArrowRight' && expanded === 'false') ||
    (event.key === 'ArrowLeft' && expanded === 'true')
  ) {
    event.preventDefault();
    item.click();
  }
}
