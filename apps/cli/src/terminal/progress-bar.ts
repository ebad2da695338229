import type { Terminal } from './terminal.ts';

/** A bar that is drawn over itself on the standard error. Nothing is drawn where nobody watches. */
export interface ProgressBar {
  /** @param done of `total`; drawn when it has moved enough to be seen */
  update(done: number, total: number, words: string): void;
  /** Takes the bar away. */
  clear(): void;
}

const BAR_WIDTH = 24;
const REDRAW_MS = 80;
const CLEAR_LINE = '\r\x1b[2K';

export function progressBar(terminal: Terminal, now: () => number = Date.now): ProgressBar {
  let drawnAt = Number.NEGATIVE_INFINITY;
  let isDrawn = false;
  return {
    update(done, total, words) {
      if (!terminal.isWatched || now() - drawnAt < REDRAW_MS) return;
      drawnAt = now();
      isDrawn = true;
      terminal.tell(`${CLEAR_LINE}${barLine(done, total, words).slice(0, terminal.columns - 1)}`);
    },
    clear() {
      if (isDrawn) terminal.tell(CLEAR_LINE);
      isDrawn = false;
    },
  };
}

function barLine(done: number, total: number, words: string): string {
  const share = total === 0 ? 1 : done / total;
  const filled = Math.round(share * BAR_WIDTH);
  const percent = `${Math.floor(share * 100)}`.padStart(3);
  return `${'━'.repeat(filled)}${'╌'.repeat(BAR_WIDTH - filled)} ${percent} %  ${words}`;
}
