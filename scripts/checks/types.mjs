import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { runTool } from '../run/process.mjs';
import { root, workspacePackages } from '../run/workspace.mjs';

/** TypeScript 7, which is several times as fast as the one that builds and documentation still need. It takes several cores by itself. */
const COMPILER = 'typescript-7';

/** @type {import('./all.mjs').Check} */
export const types = {
  name: 'types',
  about: 'TypeScript in every package, its tests and benches',
  async run() {
    const folders = ['.', ...workspacePackages().map(({ folder }) => folder)];
    const projects = folders.map((folder) => join(folder, 'tsconfig.json')).filter((path) => existsSync(join(root, path)));
    let problems = '';
    for (const project of projects) {
      const { code, output } = await runTool(COMPILER, ['--noEmit', '--project', project], { capture: true });
      if (code !== 0) problems += output;
    }
    return {
      problems,
      note: `${projects.length - 1} packages and the test set-up`,
      remedy: 'mend the errors above; `npx tsc --noEmit` in the package shows them alone.',
    };
  },
};
