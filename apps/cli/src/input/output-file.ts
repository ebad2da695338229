import { writeFile } from 'node:fs/promises';
import { CliError } from '../cli-error.ts';

/** Writes a file that the command line names. Throws {CliError} when that cannot be done. */
export async function writeOutput(path: string, text: string): Promise<void> {
  try {
    await writeFile(path, text);
  } catch (cause) {
    throw new CliError(`cannot write ${path}: ${(cause as NodeJS.ErrnoException).code ?? cause}`);
  }
}
