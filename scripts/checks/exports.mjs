import { runTool } from '../run/process.mjs';

/** @type {import('./all.mjs').Check} */
export const exportsOfPackages = {
  name: 'exports',
  about: 'packed packages resolve for bundlers, Node and TypeScript (publint, attw)',
  packs: true,
  async run({ packs }) {
    const problems = [];
    for (const { name, tarball, manifest } of packs) {
      const lint = await runTool('publint', ['run', tarball, '--strict'], { capture: true });
      if (lint.code !== 0) problems.push(`${name}\n${lint.output}`);
      // A command has nothing to import.
      if (manifest.exports['.'] === undefined) continue;
      const args = [tarball, '--profile', 'esm-only', '--format', 'ascii', '--no-color', '--no-emoji'];
      const resolution = await runTool('@arethetypeswrong/cli', args, { capture: true });
      if (resolution.code !== 0) problems.push(`${name}\n${resolution.output}`);
    }
    return {
      problems: problems.join('\n'),
      note: `${packs.length} packages resolve for bundlers, Node and TypeScript`,
      remedy: 'mend `exports` and `publishConfig.exports` of the package: types first, every target built by tsup.config.ts.',
    };
  },
};
