import { runPnpm, runTool } from '../run/process.mjs';

/** @type {import('./all.mjs').Check} */
export const types = {
  name: 'types',
  about: 'TypeScript in every package, its tests and benches',
  async run() {
    const args = ['exec', 'turbo', 'run', 'typecheck', '--continue', '--output-logs=errors-only', '--concurrency=2'];
    const packages = await runPnpm(args, { capture: true });
    const repository = await runTool('typescript', ['--noEmit', '-p', 'tsconfig.json'], { capture: true });
    const [, cached, total] = /Cached:\s+(\d+) cached, (\d+) total/.exec(packages.output) ?? [];
    return {
      problems: [packages, repository].map(({ code, output }) => (code === 0 ? '' : output)).join(''),
      note: `${total} packages and the test set-up, ${cached} of them unchanged`,
      remedy: 'mend the errors above; `npx tsc --noEmit` in the package shows them alone.',
    };
  },
};
