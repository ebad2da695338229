import { runTool } from '../run/process.mjs';

/** @type {import('./all.mjs').Check} */
export const unused = {
  name: 'unused',
  about: 'files, exports and dependencies that nobody uses (knip)',
  async run() {
    const { code, output } = await runTool('knip', ['--no-progress', '--no-config-hints'], { capture: true });
    return {
      problems: code === 0 ? '' : output,
      note: 'no file, export or dependency is without a user',
      remedy: 'remove what is listed; what must stay for a reason goes into knip.jsonc.',
    };
  },
};
