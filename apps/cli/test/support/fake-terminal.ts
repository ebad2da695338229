import { createColors } from 'picocolors';
import type { Command } from '../../src/command/command.ts';
import { run } from '../../src/command/run.ts';
import type { Terminal } from '../../src/terminal/terminal.ts';

export interface Outcome {
  code: number;
  printed: string;
  told: string;
}

export interface FakeTerminalOptions {
  columns?: number;
  isWatched?: boolean;
  hasColors?: boolean;
  signal?: AbortSignal;
}

/** Runs a command line on a terminal that keeps what it is given. */
export async function runOn(
  commands: readonly Command[],
  argv: readonly string[],
  options: FakeTerminalOptions = {},
): Promise<Outcome> {
  const { columns = 100, isWatched = false, hasColors = false, signal = new AbortController().signal } = options;
  const kept = { printed: '', told: '' };
  const terminal: Terminal = {
    columns,
    colors: createColors(hasColors),
    isWatched,
    signal,
    print: (text) => {
      kept.printed += text;
    },
    tell: (text) => {
      kept.told += text;
    },
  };
  const code = await run(commands, argv, terminal);
  return { code, ...kept };
}

/** What a person sees of a mistake: nothing on the standard output, one line on the standard error. */
export function isOneLine({ printed, told }: Outcome): boolean {
  return printed === '' && told.trimEnd().split('\n').length === 1;
}
