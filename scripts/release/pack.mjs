import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { CommandError, runPnpm } from '../run/process.mjs';
import { indented } from '../run/terminal.mjs';
import { publishedPackages } from '../run/workspace.mjs';
import { makeReleaseCopy, readCopy } from './release-copy.mjs';
import { readTarball } from './tarball.mjs';

/**
 * One published package as the registry would get it.
 *
 * @typedef {{ name: string, folder: string, tarball: string, unpacked: string, files: string[], manifest: Record<string, any>,
 *   changelog: string | undefined }} Pack
 *   `folder` is the source package relative to the root, `tarball` and `unpacked` are absolute, `files` are relative to the package,
 *   `changelog` is its text with the next release, undefined while there is none
 */

/**
 * Packs everything that is published, in a throw-away copy that has the versions of the next release. Packing also applies `publishConfig` and
 * turns versions of the workspace and the catalog into real ones.
 */
export async function packPackages() {
  const copy = await makeReleaseCopy();
  const folder = join(copy, 'packs');
  const filters = publishedPackages().flatMap(({ name }) => ['--filter', name]);
  const args = [...filters, '-r', 'pack', '--pack-destination', folder];
  const { code, output } = await runPnpm(args, { cwd: copy, capture: true });
  if (code !== 0) throw new CommandError(`Packing failed:\n\n${indented(output)}`, code);

  const packs = readdirSync(folder)
    .filter((name) => name.endsWith('.tgz'))
    .sort()
    .map((name) => unpack(copy, join(folder, name), join(folder, 'unpacked')));
  const missing = publishedPackages().filter((each) => !packs.some((pack) => pack.name === each.name));
  if (missing.length > 0) throw new CommandError(`Packing left out ${missing.map((each) => each.name).join(', ')}.`);
  const versions = [...new Set(packs.map(({ manifest }) => manifest.version))];
  return { note: `${packs.length} packages, ${versions.join(' and ')}`, value: packs };
}

function unpack(copy, tarball, parent) {
  const entries = readTarball(readFileSync(tarball)).map(({ path, bytes }) => ({ path: path.replace(/^package\//, ''), bytes }));
  const manifest = JSON.parse(entries.find((entry) => entry.path === 'package.json').bytes.toString('utf8'));
  const unpacked = join(parent, 'node_modules', manifest.name);
  for (const { path, bytes } of entries) {
    mkdirSync(dirname(join(unpacked, path)), { recursive: true });
    writeFileSync(join(unpacked, path), bytes);
  }
  const { name, folder } = publishedPackages().find((each) => each.name === manifest.name);
  const files = entries.map((entry) => entry.path).sort();
  return { name, folder, tarball, unpacked, files, manifest, changelog: readCopy(copy, folder).changelog };
}
