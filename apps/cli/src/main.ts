import { BufferwiseError } from '@bufferwise/core-policy';
import { type CommandDef, defineCommand, renderUsage, runCommand } from 'citty';
import { CliError } from './cli-error.ts';
import { demo } from './commands/demo.ts';
import { generate } from './commands/generate.ts';

const commands: Record<string, CommandDef> = { demo: demo as CommandDef, generate: generate as CommandDef };

const main = defineCommand({
  meta: { name: 'bufferwise', description: 'A KV cache in which each buffer of a layer has its own reuse policy' },
  subCommands: commands,
});

/** Runs the command that the arguments name. Returns the exit code; errors that a person can mend are one line. */
async function run(argv: readonly string[]): Promise<number> {
  const [name, ...rest] = argv;
  const command = name === undefined ? undefined : commands[name];
  if (name === undefined || name === '--help' || name === '-h') {
    process.stdout.write(`${await renderUsage(main)}\n`);
    return 0;
  }
  if (command === undefined) {
    process.stderr.write(
      `bufferwise: unknown command ${JSON.stringify(name)}; there are ${Object.keys(commands).join(' and ')}\n`,
    );
    return 1;
  }
  if (rest.includes('--help') || rest.includes('-h')) {
    process.stdout.write(`${await renderUsage(command, main)}\n`);
    return 0;
  }
  try {
    const { result } = await runCommand(command, { rawArgs: rest });
    return typeof result === 'number' ? result : 0;
  } catch (error) {
    if (!isMendable(error)) throw error;
    process.stderr.write(`bufferwise ${name}: ${(error as Error).message}\n`);
    return 1;
  }
}

/** Bad input and a device that cannot be had; anything else is a bug and keeps its stack. */
function isMendable(error: unknown): boolean {
  return error instanceof CliError || BufferwiseError.isInstance(error) || (error instanceof Error && error.name === 'CLIError');
}

process.exitCode = await run(process.argv.slice(2));
