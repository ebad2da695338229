import type { ComponentChildren } from 'preact';

interface TreeItemProps {
  kind: string;
  level: number;
  /** Undefined where there is nothing to open. */
  isOpen?: boolean;
  isChosen?: boolean;
  /** Opens, closes, or chooses it. */
  choose: () => void;
  children: ComponentChildren;
}

/** One item of a tree: the keys of the pattern for trees work on it. */
export function TreeItem({ kind, level, isOpen, isChosen = false, choose, children }: TreeItemProps) {
  return (
    <div
      role="treeitem"
      class={kind}
      aria-level={level}
      aria-expanded={isOpen}
      aria-selected={isChosen}
      tabIndex={level === 1 ? 0 : -1}
      onClick={(event) => {
        event.stopPropagation();
        choose();
      }}
      onKeyDown={(event) => {
        event.stopPropagation();
        if (goes(event, event.currentTarget, isOpen, choose)) event.preventDefault();
      }}
    >
      {children}
    </div>
  );
}

/** Arrows go through the items that are shown, left and right close and open them, Enter and Space choose. */
function goes(event: KeyboardEvent, item: HTMLElement, isOpen: boolean | undefined, choose: () => void): boolean {
  const items = [...(item.closest('[role="tree"]')?.querySelectorAll<HTMLElement>('[role="treeitem"]') ?? [])];
  const at = items.indexOf(item);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
  if (to !== undefined) {
    items[Math.min(items.length - 1, Math.max(0, to))].focus();
    return true;
  }
  const chooses =
    event.key === 'Enter' ||
    event.key === ' ' ||
    (event.key === 'ArrowRight' && isOpen === false) ||
    (event.key === 'ArrowLeft' && isOpen === true);
  if (chooses) choose();
  return chooses;
}
