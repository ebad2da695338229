import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { CliError, UsageError } from '../cli-error.ts';
import { defineCommand } from '../command/command.ts';
import { repositoryOf } from '../input/repository.ts';
import type { Terminal } from '../terminal/terminal.ts';

/** Runs the repository's benches: `scripts/run/bench.mjs` does it, here and for `npm run bench`. */
export const bench = defineCommand({
  name: 'bench',
  summary: "The repository's benches: figures as tables or a report, held against a saved one",
  args: {
    names: {
      type: 'positional',
      description: 'Parts of paths between commas: only benches that have one of them',
      required: false,
    },
    json: { type: 'boolean', description: 'Print the report as one JSON object', default: false },
    out: { type: 'string', description: 'Write the report into a file', valueHint: 'FILE' },
    compare: {
      type: 'string',
      description: 'A report to hold the figures against; code 1 when one is worse by more than the tolerance',
      valueHint: 'FILE',
    },
    tolerance: {
      type: 'string',
      description: 'Part by which a figure may be worse: 0.25 lets 100 ms become 125',
      valueHint: 'PART',
      default: '0.25',
    },
  },
  examples: [
    { what: 'Two benches, kept for later', line: 'bufferwise bench page-copy,page-index --out before.json' },
    { what: 'Whether a change made them slower', line: 'bufferwise bench page-copy,page-index --compare before.json' },
  ],
  async run(given, terminal) {
    const tolerance = Number(given.tolerance);
    if (!(given.tolerance.trim() !== '' && tolerance >= 0 && tolerance <= 100)) {
      throw new UsageError(`--tolerance is ${JSON.stringify(given.tolerance)}; it is a part from 0 to 100, as 0.25`);
    }
    const script = benchScript();
    const names = (given.names ?? '').split(',').filter((name) => name !== '');
    const files = (['out', 'compare'] as const).flatMap((flag) => {
      const path = given[flag];
      return path === undefined ? [] : [`--${flag}`, path];
    });
    const flags = ['--tolerance', `${tolerance}`, ...files, ...(given.json ? ['--json'] : [])];
    return runScript([script, 'bench', ...names, ...flags], terminal);
  },
});

/**
 * The script that runs benches, of the repository that a file lies in.
 *
 * @throws {CliError} when it lies in none
 */
export function benchScript(file?: string): string {
  const repository = repositoryOf(file);
  if (repository !== undefined) return join(repository, 'scripts', 'run.mjs');
  throw new CliError(
    'bench measures the packages in their repository, and this command is not in it: clone it, and run `npm run bench`',
  );
}

/** What it prints is printed; Ctrl-C ends it. */
function runScript(args: readonly string[], terminal: Terminal): Promise<number> {
  return new Promise((resolve, reject) => {
    const colors = terminal.colors.isColorSupported ? { FORCE_COLOR: '1' } : { NO_COLOR: '1', FORCE_COLOR: undefined };
    const child = spawn(process.execPath, args, {
      env: { ...process.env, ...colors, COLUMNS: `${terminal.columns}` },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const end = () => void child.kill('SIGTERM');
    terminal.signal.addEventListener('abort', end);
    if (terminal.signal.aborted) end();
    child.stdout.setEncoding('utf8').on('data', (text: string) => terminal.print(text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => terminal.tell(text));
    child.on('error', reject);
    child.on('close', (code) => {
      terminal.signal.removeEventListener('abort', end);
      if (terminal.signal.aborted) reject(terminal.signal.reason);
      else resolve(code ?? 1);
    });
  });
}
