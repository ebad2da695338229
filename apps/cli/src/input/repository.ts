import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The repository of Bufferwise that a file lies in, as the built command does there; undefined where the command was installed. */
export function repositoryOf(file: string = fileURLToPath(import.meta.url)): string | undefined {
  for (let folder = dirname(file); folder !== dirname(folder); folder = dirname(folder)) {
    if (existsSync(join(folder, 'scripts', 'run.mjs')) && existsSync(join(folder, 'pnpm-workspace.yaml'))) return folder;
  }
  return undefined;
}
