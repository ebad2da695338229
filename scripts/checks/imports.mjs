import { runTool } from '../run/process.mjs';

/** @type {import('./all.mjs').Check} */
export const imports = {
  name: 'imports',
  about: 'the direction of imports between and inside packages',
  async run() {
    const args = ['--config', '.dependency-cruiser.mjs', '--output-type', 'err', 'packages', 'apps', 'internal', 'examples'];
    const { code, output } = await runTool('dependency-cruiser', args, { capture: true, env: { NODE_OPTIONS: '--no-warnings' } });
    const [, modules] = /\((\d+) modules/.exec(output) ?? [];
    return {
      problems: code === 0 ? '' : output,
      note: `${modules ?? 'all'} modules import downwards only`,
      remedy: 'move the code to the package that owns it, or take what you need through a port; CONTRIBUTING.md has the table.',
    };
  },
};
