import { COMMANDS } from './command/commands.ts';
import { run } from './command/run.ts';
import { processTerminal } from './terminal/terminal.ts';

process.exitCode = await run(COMMANDS, process.argv.slice(2), processTerminal());
