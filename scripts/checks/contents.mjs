import { existsSync, mkdirSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { run } from '../run/process.mjs';
import { root } from '../run/workspace.mjs';

/** @type {import('./all.mjs').Check} */
export const contents = {
  name: 'contents',
  about: 'packed packages hold what they should and load with what they declare',
  packs: true,
  async run({ packs }) {
    for (const pack of packs) linkDeclared(pack, packs);
    const problems = [];
    for (const pack of packs) {
      problems.push(...unwantedIn(pack).map((problem) => `${pack.name}: ${problem}`));
      problems.push(...(await loadFailures(pack)).map((problem) => `${pack.name}: ${problem}`));
    }
    return {
      problems: problems.join('\n'),
      note: `${packs.length} packages hold dist, README, LICENSE and package.json, and load with what they declare`,
      remedy: "mend `files`, `publishConfig` or `dependencies` in the package's package.json, or add the missing file.",
    };
  },
};

const REQUIRED = ['package.json', 'README.md', 'LICENSE'];

/**
 * What should not be in a package as it is published, or is missing from it.
 *
 * @param {Pick<import('../release/pack.mjs').Pack, 'files' | 'manifest'>} pack
 * @returns {string[]} one sentence each
 */
export function unwantedIn({ files, manifest }) {
  const installed = JSON.stringify([manifest.dependencies, manifest.peerDependencies, manifest.optionalDependencies]);
  return [
    ...REQUIRED.filter((file) => !files.includes(file)).map((file) => `${file} is missing`),
    ...files
      .filter((file) => !REQUIRED.includes(file) && !file.startsWith('dist/'))
      .map((file) => `${file} does not belong in it`),
    ...files.filter((file) => /\.test\.|\.bench\./.test(file)).map((file) => `${file} is a test or a bench`),
    ...targetsOf(manifest.exports)
      .filter((target) => !files.includes(target))
      .map((target) => `exports names ${target}, which is missing`),
    ...targetsOf(manifest.bin)
      .filter((target) => !files.includes(target))
      .map((target) => `bin names ${target}, which is missing`),
    ...(JSON.stringify(manifest.exports).includes('@bufferwise/source')
      ? ['exports still has the condition for the source']
      : []),
    ...(/"(?:workspace|catalog):/.test(installed) ? ['a dependency has no real version'] : []),
    ...(installed.includes('@bufferwise-internal/') ? ['a dependency is private to this repository'] : []),
  ];
}

const targetsOf = (exports) =>
  typeof exports === 'string' ? [exports.replace(/^\.\//, '')] : Object.values(exports ?? {}).flatMap(targetsOf);

/** Gives the unpacked package a node_modules with exactly its declared dependencies. */
function linkDeclared(pack, packs) {
  const declared = Object.keys({ ...pack.manifest.dependencies, ...pack.manifest.peerDependencies });
  for (const name of declared) {
    const own = packs.find((each) => each.name === name)?.unpacked;
    const target = own ?? join(root, pack.folder, 'node_modules', name);
    const link = join(pack.unpacked, 'node_modules', name);
    if (!existsSync(target) || existsSync(link)) continue;
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(target, link, 'junction');
  }
}

async function loadFailures({ unpacked, manifest }) {
  const paths = Object.keys(manifest.exports).filter((path) => path !== './package.json');
  const names = paths.map((path) => manifest.name + path.slice(1));
  const script = `for (const name of ${JSON.stringify(names)}) {
    try { await import(name); } catch (error) { console.log(name + ' does not load: ' + error.message.split('\\n')[0]); }
  }`;
  const { output } = await run(process.execPath, ['--input-type=module', '--eval', script], { cwd: unpacked, capture: true });
  return output.split('\n').filter((line) => line !== '');
}
