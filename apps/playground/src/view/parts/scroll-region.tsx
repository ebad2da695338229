import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

interface ScrollRegionProps {
  kind: string;
  label: string;
  /** When this changes, the end comes into view. */
  follows?: unknown;
  children: ComponentChildren;
}

/** Something long in little room. */
export function ScrollRegion({ kind, label, follows, children }: ScrollRegionProps) {
  const box = useRef<HTMLElement>(null);
  useEffect(() => {
    const { current: element } = box;
    if (follows !== undefined && element !== null) element.scrollTop = element.scrollHeight;
  }, [follows]);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be within reach of the keys that scroll.
    <section class={kind} ref={box} tabIndex={0} aria-label={label}>
      {children}
    </section>
  );
}
