import { UsageError } from '../cli-error.ts';
import { type Command, defineCommand } from '../command/command.ts';
import { completionScript, SHELLS } from '../command/completion-scripts.ts';

/** Prints a completion script for a shell, of itself and the other commands. */
export function completionOf(others: readonly Command[]): Command {
  const completion: Command = defineCommand({
    name: 'completion',
    summary: 'Print a script that completes commands and options in your shell',
    args: {
      shell: { type: 'positional', description: `One of ${SHELLS.join(', ')}`, required: true },
      json: { type: 'boolean', description: 'Print {"shell", "script"} instead of the script alone', default: false },
    },
    operandValues: { shell: SHELLS },
    examples: [
      { what: 'For this shell, now; put the line into ~/.bashrc to keep it', line: 'source <(bufferwise completion bash)' },
      { what: 'fish', line: 'bufferwise completion fish | source' },
    ],
    async run(given, terminal) {
      const shell = SHELLS.find((each) => each === given.shell);
      if (shell === undefined)
        throw new UsageError(`unknown shell ${JSON.stringify(given.shell)}; there are ${SHELLS.join(', ')}`);
      const script = completionScript(shell, [...others, completion]);
      terminal.print(given.json ? `${JSON.stringify({ shell, script })}\n` : script);
      return 0;
    },
  });
  return completion;
}
