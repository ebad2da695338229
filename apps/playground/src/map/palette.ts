import { NEUTRAL, NUM_HUES, SHARED } from './cell-codes.ts';

/** Colours as the style sheet has them in the present theme. */
export interface Palette {
  /** By place in the palette; CSS colours. */
  readonly colours: readonly string[];
  readonly free: string;
  /** Drawn around what has just changed. */
  readonly glow: string;
}

/** Reads the palette off an element. */
export function readPalette(element: Element): Palette {
  const style = getComputedStyle(element);
  const value = (name: string) => style.getPropertyValue(name).trim();
  const colours: string[] = Array.from({ length: NUM_HUES }, (_, hue) => value(`--hue-${hue}`));
  colours[NEUTRAL] = value('--cell-neutral');
  colours[SHARED] = value('--cell-shared');
  return { colours, free: value('--cell-free'), glow: value('--cell-glow') };
}
