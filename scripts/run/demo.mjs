import { join } from 'node:path';
import { buildPackages } from './build.mjs';
import { dependencies } from './dependencies.mjs';
import { run } from './process.mjs';
import { progress, say } from './terminal.mjs';
import { root } from './workspace.mjs';

/** `demo`: the command line app's demo, with what stands behind `--` handed on. */
export async function demo(args) {
  const { step } = progress(2);
  await step('dependencies', dependencies);
  await step('build', () => buildPackages(['bufferwise']));
  say();
  const { code } = await run(process.execPath, [join(root, 'apps/cli/dist/bufferwise.js'), 'demo', ...args]);
  return code;
}
