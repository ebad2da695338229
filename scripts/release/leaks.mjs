import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../run/workspace.mjs';

/**
 * What of the workspace is left in packages as they were installed, one sentence each.
 *
 * @param {import('./consumer.mjs').Consumer} consumer
 * @param {import('./pack.mjs').Pack[]} packs
 */
export function leaksIn(consumer, packs) {
  const own = new Set(packs.map(({ name }) => name));
  return packs.flatMap(({ name, manifest, changelog }) => {
    if (!consumer.isReal(name)) return [`${name} was not installed as a folder of its own`];
    const installed = consumer.manifestOf(name);
    const texts = filesIn(consumer.installed(name)).filter((path) => readFileSync(path, 'latin1').includes(root));
    return [
      ...(installed.version === manifest.version
        ? []
        : [`${name} was installed in ${installed.version}, not ${manifest.version}`]),
      ...unreleased({ name, manifest: installed, changelog, own }),
      ...copiesBelow(consumer.installed(name), own).map((copy) => `${name} has a copy of ${copy} of its own`),
      ...texts.map((path) => `${path.slice(consumer.folder.length + 1)} names a folder of the machine it was built on`),
    ];
  });
}

/**
 * What keeps a package from being released, one sentence each.
 *
 * @param {{ name: string, manifest: Record<string, any>, changelog: string | undefined, own: Set<string> }} pack `own` has the names of
 *   everything that is published with it, in the same version
 */
export function unreleased({ name, manifest, changelog, own }) {
  const { version, dependencies = {}, peerDependencies = {} } = manifest;
  const needed = Object.entries({ ...dependencies, ...peerDependencies });
  return [
    ...(version === '0.0.0' ? [`${name} has no version: no changeset announces it`] : []),
    ...(/"(?:workspace|catalog|link|file):/.test(JSON.stringify(manifest))
      ? [`${name}: its package.json has a version that only the workspace understands`]
      : []),
    ...needed
      .filter(([other, range]) => own.has(other) && range !== `^${version}`)
      .map(([other, range]) => `${name} asks for ${other} ${range}, which is not of its release: ^${version}`),
    ...(new RegExp(`^## ${version.replaceAll('.', '\\.')}$`, 'm').test(changelog ?? '')
      ? []
      : [`${name}: its changelog does not tell of ${version}`]),
  ];
}

/** Names of packages of the release that lie once more below an installed one. */
function copiesBelow(folder, own) {
  const below = join(folder, 'node_modules');
  if (!existsSync(below)) return [];
  return filesIn(below)
    .filter((path) => path.endsWith('package.json'))
    .map((path) => JSON.parse(readFileSync(path, 'utf8')).name)
    .filter((name) => own.has(name));
}

function filesIn(folder) {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}
