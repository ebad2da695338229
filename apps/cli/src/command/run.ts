import { BufferwiseError } from '@bufferwise/core-policy';
import { TraceError } from '@bufferwise-internal/request-traces';
import { parseArgs } from 'citty';
import { CliError, UsageError } from '../cli-error.ts';
import { refuseUnknown } from '../input/arguments.ts';
import { INTERRUPTED, Interrupted, type Terminal, Unheard } from '../terminal/terminal.ts';
import type { Command } from './command.ts';
import { commandHelp, mainHelp } from './help.ts';

const HELP = ['--help', '-h', 'help'];

/**
 * Runs the command that the arguments name. Errors that a person can mend are one line; bugs are thrown.
 *
 * @param argv what stands behind `bufferwise`
 * @returns the exit code: 0 all is well or nobody reads the results, 1 failed, 2 a wrong command line, 130 stopped with Ctrl-C
 */
export async function run(commands: readonly Command[], argv: readonly string[], terminal: Terminal): Promise<number> {
  const [name, ...rest] = argv;
  const isHelp = name === undefined || HELP.includes(name);
  const command = commands.find((each) => each.name === (isHelp ? rest[0] : name));
  if (isHelp || rest.some((word) => word === '--help' || word === '-h')) {
    const unknown = isHelp ? rest[0] : name;
    if (command === undefined && unknown !== undefined) return complain(terminal, unknownCommand(commands, unknown));
    terminal.print(command === undefined ? mainHelp(commands, terminal) : commandHelp(command, terminal));
    return 0;
  }
  if (command === undefined) return complain(terminal, unknownCommand(commands, name));
  try {
    const given = parse(command, rest);
    const code = await command.run(given, terminal);
    return code === INTERRUPTED && isUnheard(terminal) ? 0 : code;
  } catch (error) {
    if (isUnheard(terminal)) return 0;
    if (error instanceof Interrupted || terminal.signal.aborted) return INTERRUPTED;
    if (!isMendable(error)) throw error;
    return complain(terminal, error as Error, name);
  }
}

const isUnheard = ({ signal }: Terminal) => signal.reason instanceof Unheard;

function parse(command: Command, rest: readonly string[]) {
  let given: ReturnType<typeof parseArgs>;
  try {
    given = parseArgs([...rest], command.args);
  } catch (error) {
    if (error instanceof Error && error.name === 'CLIError') throw new UsageError(plain(error.message));
    throw error;
  }
  refuseUnknown(command, given);
  return given;
}

/** The parser colours what it complains about, whoever reads it. */
function plain(text: string): string {
  return text.replaceAll(new RegExp(`${String.fromCharCode(27)}\\[\\d+m`, 'g'), '');
}

function unknownCommand(commands: readonly Command[], name: string): UsageError {
  return new UsageError(`unknown command ${JSON.stringify(name)}; there are ${commands.map((each) => each.name).join(', ')}`);
}

function complain(terminal: Terminal, error: Error, name?: string): number {
  terminal.tell(`bufferwise${name === undefined ? '' : ` ${name}`}: ${error.message}\n`);
  return error instanceof UsageError ? 2 : 1;
}

/** Bad input and a device that cannot be had; anything else is a bug and keeps its stack. */
function isMendable(error: unknown): boolean {
  return error instanceof CliError || error instanceof TraceError || BufferwiseError.isInstance(error);
}
