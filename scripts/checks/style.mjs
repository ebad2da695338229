import { runTool } from '../run/process.mjs';

/** @type {import('./all.mjs').Check} */
export const style = {
  name: 'style',
  about: 'formatting and lint rules',
  async run() {
    const { code, output } = await runTool(
      '@biomejs/biome',
      ['ci', '--colors=off', '--error-on-warnings', '--max-diagnostics=20'],
      {
        capture: true,
      },
    );
    const [, files] = /Checked (\d+) files/.exec(output) ?? [];
    return {
      problems: code === 0 ? '' : output,
      note: `${files ?? 'all'} files are formatted and free of lint`,
      remedy: 'run `npx biome check --write`, then mend by hand what it leaves.',
    };
  },
};
