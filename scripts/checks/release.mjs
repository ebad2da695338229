import { prove } from '../release/prove.mjs';

/** @type {import('./all.mjs').Check} */
export const release = {
  name: 'release',
  about: 'packed packages do their work in projects outside of the workspace',
  packs: true,
  async run({ packs }) {
    const problems = await prove(packs);
    return {
      problems: problems.join('\n'),
      note: `${packs.length} packages, installed from their tarballs alone, work on Node, as a command, for TypeScript, and in pages of Vite and webpack`,
      remedy:
        'what a person who installs the packages meets is above; scripts/release/projects has the projects, `npm run check release` runs them alone.',
    };
  },
};
