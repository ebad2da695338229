import { buildSite } from '../docs/build-site.mjs';

/** @type {import('./all.mjs').Check} */
export const docs = {
  name: 'docs',
  about: 'the documentation: API pages without a warning (typedoc), guides without a dead link (VitePress)',
  async run() {
    const { problems, numPages } = await buildSite();
    return {
      problems,
      note: `${numPages} pages and the API in docs/dist, without a warning or a dead link`,
      remedy:
        'mend the doc comments above (links must resolve, and a type that a public name mentions must be exported), or the links of the pages.',
    };
  },
};
