import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CliError } from '../cli-error.ts';

export interface SecondProcessOptions {
  /** Folder of the model. */
  readonly model: string;
  /** What `--store` of the first process names. */
  readonly store: string;
  /** Token ids. */
  readonly prompt: ArrayLike<number>;
  readonly maxNewTokens: number;
  readonly memoryBytes: number;
  /** For the file with the prompt. Stays the caller's. */
  readonly folder: string;
  /** Ends the process. */
  readonly signal: AbortSignal;
}

/** What the second process said of its one prompt: the fields of a line of `generate --json`. */
export interface SecondAnswer {
  readonly text: string;
  readonly tokens: readonly number[];
  readonly reusedTokens: number;
  readonly computedTokens: number;
  readonly firstTokenMs: number;
  readonly groups: readonly { readonly reusedTokens: number }[];
}

/** An answer has some bytes a token. */
const MAX_OUTPUT_BYTES = 2 ** 28;

/**
 * Answers a prompt in a process of its own, which begins with an empty cache: this command once more, as `generate --store`.
 *
 * @throws {CliError} when it fails, with what it said
 */
export async function askSecondProcess(options: SecondProcessOptions): Promise<SecondAnswer> {
  const prompts = join(options.folder, 'prompt.jsonl');
  await writeFile(prompts, JSON.stringify({ ids: Array.from(options.prompt) }));
  const args = [
    ...['generate', '--json', '--model', options.model, '--store', options.store, '--prompts', prompts],
    ...['--max-new-tokens', String(options.maxNewTokens), '--memory', String(options.memoryBytes)],
  ];
  return JSON.parse(await outputOf(args, options.signal));
}

function outputOf(args: readonly string[], signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(
      process.execPath,
      [...process.execArgv, process.argv[1], ...args],
      { signal, maxBuffer: MAX_OUTPUT_BYTES },
      (error, stdout, stderr) => {
        if (error === null) resolve(stdout);
        else if (signal.aborted) reject(signal.reason);
        else reject(new CliError(`the second process failed: ${stderr.trim() || error.code}`));
      },
    );
  });
}
