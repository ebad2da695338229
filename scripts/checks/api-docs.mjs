import { runTool } from '../run/process.mjs';

/** @type {import('./all.mjs').Check} */
export const apiDocs = {
  name: 'docs',
  about: 'API pages of all packages, without a warning (typedoc)',
  async run() {
    const { code, output } = await runTool('typedoc', [], { capture: true });
    return {
      problems: code === 0 ? '' : output,
      note: 'the API pages in docs/api are made without a warning',
      remedy: 'mend the doc comments above: links must resolve, and a type that a public name mentions must be exported.',
    };
  },
};
