import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { publishedPackages, root } from '../run/workspace.mjs';
import { changedSince, fileAt, releaseBase } from './release-base.mjs';

/** @type {import('./all.mjs').Check} */
export const changeset = {
  name: 'changeset',
  about: 'every change that reaches people who install is told to them',
  async run() {
    const base = await releaseBase();
    const changed = base === undefined ? [] : await changedSince(base.commit);
    const packages = await Promise.all(
      publishedPackages().map(async ({ name, folder, manifest }) => {
        const before = base && (await fileAt(base.commit, `${folder}/package.json`));
        return { name, folder, version: manifest.version, versionAtBase: before && JSON.parse(before).version };
      }),
    );
    const untold = untoldPackages(packages, changed, announcedPackages());
    return {
      problems: untold.map(({ name, reason }) => `${name} ${reason}`).join('\n'),
      note: base === undefined ? 'each unreleased package has one' : `nothing untold since ${base.label}`,
      remedy: 'run `npx changeset` and write, for the person who upgrades, what they get or must do; CONTRIBUTING.md shows how.',
    };
  },
};

/**
 * Published packages that need a changeset and have none.
 *
 * A package that was never released (version 0.0.0) needs one for its first release. A released one needs one when its shipped
 * files changed since the base, unless its version was raised since, which is how changesets are used up.
 *
 * @param {{ name: string, folder: string, version: string, versionAtBase?: string }[]} packages
 * @param {string[]} changed paths relative to the root
 * @param {Set<string>} announced names of packages in pending changesets
 */
export function untoldPackages(packages, changed, announced) {
  return packages
    .filter(({ name }) => !announced.has(name))
    .flatMap(({ name, folder, version, versionAtBase }) => {
      if (version === '0.0.0') return [{ name, reason: 'was never released and no changeset announces it' }];
      if (versionAtBase !== undefined && version !== versionAtBase) return [];
      const shipped = changed.filter((path) => path.startsWith(`${folder}/`) && reachesUsers(path.slice(folder.length + 1)));
      return shipped.length === 0 ? [] : [{ name, reason: `changed without a changeset: ${listed(shipped)}` }];
    });
}

const reachesUsers = (path) =>
  path === 'package.json' ||
  path === 'README.md' ||
  (path.startsWith('src/') && !/(?:\.(?:test|test-d|bench)|-rig)\.ts$/.test(path));

const listed = (paths) => (paths.length <= 3 ? paths.join(', ') : `${paths.slice(0, 3).join(', ')} and ${paths.length - 3} more`);

/** Names of packages that pending changesets announce. */
function announcedPackages() {
  const folder = join(root, '.changeset');
  const files = readdirSync(folder).filter((name) => name.endsWith('.md') && name !== 'README.md');
  return new Set(files.flatMap((name) => namesIn(readFileSync(join(folder, name), 'utf8'))));
}

/** @param {string} text of a changeset: front matter of `"package": major | minor | patch`, then words for people */
export function namesIn(text) {
  const [, head = '', body = ''] = /^---\r?\n(.*?)\r?\n---\r?\n(.*)$/s.exec(text) ?? [];
  if (body.trim() === '') return [];
  return [...head.matchAll(/^["']?([^"'\n]+?)["']?\s*:\s*(?:major|minor|patch)\s*$/gm)].map(([, name]) => name);
}
