import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { cwd, env } from 'node:process';

/**
 * Where the published traces lie: the folder that `BUFFERWISE_TRACES` names, else `../shared/data/traces` beside the repository, wherever in
 * it the process runs. Undefined when there is none: the traces are third parties' and not part of the repository.
 */
export function traceFolder(): string | undefined {
  const folder = env.BUFFERWISE_TRACES ?? join(repositoryRoot(), '..', 'shared', 'data', 'traces');
  return existsSync(folder) ? folder : undefined;
}

function repositoryRoot(): string {
  let root = cwd();
  while (!existsSync(join(root, 'pnpm-workspace.yaml')) && root !== dirname(root)) root = dirname(root);
  return root;
}
