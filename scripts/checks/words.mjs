import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root, sourceFiles } from '../run/workspace.mjs';

/** @type {import('./all.mjs').Check} */
export const words = {
  name: 'words',
  about: 'no paths or hosts of one machine, no talk about how the work was done, no printing from packages',
  async run() {
    const files = [
      ...topFiles(),
      ...['.changeset', '.ci', '.github', 'apps', 'docs', 'examples', 'internal', 'packages', 'scripts'].flatMap((folder) =>
        sourceFiles(folder, isText),
      ),
    ];
    const found = files.flatMap((path) => oddWords(path, readFileSync(join(root, path), 'utf8')));
    return {
      problems: found.map(({ path, line, why, text }) => `${path}:${line}: ${why}: ${text}`).join('\n'),
      note: `${files.length} files speak of the project only`,
      remedy:
        'say it without the machine or the occasion; what a package has to tell goes through a return value, an event or an error.',
    };
  },
};

const isText = (path) => /\.(?:ts|tsx|mts|mjs|js|cjs|wgsl|md|json|yaml|yml|html|css|py)$/.test(path) || !/\.[^/]*$/.test(path);

const topFiles = () => sourceFiles('.', (path) => !path.includes('/') && isText(path) && path !== 'pnpm-lock.yaml');

/** Spelt so that no rule finds itself. */
const RULES = [
  { why: 'a path of one machine', pattern: /(?<![\w.@:/-])\/(?:hom[e]|roo[t]|wor[k]|User[s]|mn[t])\/[\w.-]/ },
  { why: 'a package registry by name', pattern: /\bregistr[y]\.[\w-]+\.(?:org|com|io)\b/ },
  {
    why: 'an occasion instead of a reason',
    pattern: /\b(?:[Tt]his|[Tt]he|[Oo]ur|[Ll]ast) (?:sessio[n]|promp[t] said|tas[k] brief|assignmen[t])\b/,
  },
  { why: 'a number of an issue instead of a reason', pattern: /\b(?:[Ii]ssue|[Tt]icket|PR) #\d+/ },
  { why: 'printing from a package', pattern: /\bconsol[e]\.\w+/, only: /^packages\/[^/]+\/src\/.*\.ts$/, comments: false },
];

/**
 * @param {string} path relative to the root
 * @param {string} text of the file
 * @returns {{ path: string, line: number, why: string, text: string }[]} `line` counts from 1
 */
export function oddWords(path, text) {
  const rules = RULES.filter(({ only }) => only === undefined || only.test(path));
  return text
    .split('\n')
    .flatMap((content, index) =>
      rules
        .filter(({ pattern, comments = true }) =>
          pattern.test(comments ? content : content.replace(/^\s*(?:\*|\/\/|\/\*).*$/, '')),
        )
        .map(({ why }) => ({ path, line: index + 1, why, text: content.trim().slice(0, 120) })),
    );
}
