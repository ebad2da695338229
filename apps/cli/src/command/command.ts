import type { ArgsDef, ParsedArgs } from 'citty';
import type { Terminal } from '../terminal/terminal.ts';

/** A line that somebody could type, and what it does. */
export interface Example {
  readonly line: string;
  readonly what: string;
}

/** One command of `bufferwise`. Help and completions are made from this. */
export interface Command {
  readonly name: string;
  /** One line. */
  readonly summary: string;
  readonly args: ArgsDef;
  /** Words that an operand is likely to be, by its name in `args`. */
  readonly operandValues?: Readonly<Record<string, readonly string[]>>;
  readonly examples: readonly Example[];
  /**
   * @param given what was typed, as `args` describes it
   * @returns the exit code
   */
  run(given: ParsedArgs, terminal: Terminal): Promise<number>;
}

/** A command whose `run` knows the types of its own `args`. */
export function defineCommand<const A extends ArgsDef>(
  command: Omit<Command, 'args' | 'run'> & { args: A; run(given: ParsedArgs<A>, terminal: Terminal): Promise<number> },
): Command {
  return command as unknown as Command;
}
