import { createColors } from 'picocolors';
import { endBy } from './end-by.ts';

export type Colors = ReturnType<typeof createColors>;

/** Where a command writes: the process's streams, or a test's. */
export interface Terminal {
  /** Characters that a line may have. */
  readonly columns: number;
  /** Colours of the standard output; plain where nobody sees them. */
  readonly colors: Colors;
  /** Whether somebody watches the standard error: progress is shown there, and nowhere else. */
  readonly isWatched: boolean;
  /** Says that Ctrl-C was pressed, or that nobody reads the results any more. */
  readonly signal: AbortSignal;
  /** Results. */
  print(text: string): void;
  /** Progress and mistakes. */
  tell(text: string): void;
}

const WITHOUT_A_TERMINAL = 100;

/** The terminal of this process. Its first Ctrl-C ends the command in order, the second one at once. */
export function processTerminal(): Terminal {
  const { stdout, stderr, env } = process;
  const abort = new AbortController();
  // Who reads the output has seen enough of it: the command ends in order, as a GPU that is at work survives nothing else.
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    abort.abort(new Unheard());
  });
  process.on('SIGINT', () => {
    if (abort.signal.aborted) endBy('SIGINT');
    abort.abort(new Interrupted());
  });
  return {
    columns: stdout.columns || WITHOUT_A_TERMINAL,
    colors: createColors(stdout.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb'),
    isWatched: stderr.isTTY === true && env.TERM !== 'dumb',
    signal: abort.signal,
    print(text) {
      if (!(abort.signal.reason instanceof Unheard)) stdout.write(text);
    },
    tell: (text) => void stderr.write(text),
  };
}

/** The exit code after Ctrl-C, as shells have it: 128 and the number of the signal. */
export const INTERRUPTED = 130;

/** Why a command ends that was stopped with Ctrl-C. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';

  constructor() {
    super('stopped');
  }
}

/** Why a command ends whose results nobody reads any more, as behind `| head`. */
export class Unheard extends Error {
  override readonly name = 'Unheard';

  constructor() {
    super('nobody reads the results');
  }
}
