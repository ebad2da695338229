import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { CommandError, runPnpm } from '../run/process.mjs';
import { indented } from '../run/terminal.mjs';
import { cacheFolder, publishedPackages } from '../run/workspace.mjs';
import { readTarball } from './tarball.mjs';

/**
 * One published package as the registry would get it.
 *
 * @typedef {{ name: string, folder: string, tarball: string, unpacked: string, files: string[], manifest: Record<string, any> }} Pack
 *   `folder` is the source package relative to the root, `tarball` and `unpacked` are absolute, `files` are relative to the package
 */

/** Packs every published package, which also applies `publishConfig` and turns workspace versions into real ones. */
export async function packPackages() {
  const folder = join(cacheFolder, 'packs');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const { code, output } = await runPnpm(['--filter', './packages/*', '-r', 'pack', '--pack-destination', folder], {
    capture: true,
  });
  if (code !== 0) throw new CommandError(`Packing failed:\n\n${indented(output)}`, code);

  const packs = readdirSync(folder)
    .filter((name) => name.endsWith('.tgz'))
    .sort()
    .map((name) => unpack(join(folder, name), join(folder, 'unpacked')));
  const missing = publishedPackages().filter((each) => !packs.some((pack) => pack.name === each.name));
  if (missing.length > 0) throw new CommandError(`Packing left out ${missing.map((each) => each.name).join(', ')}.`);
  return { note: `${packs.length} packages`, value: packs };
}

function unpack(tarball, parent) {
  const entries = readTarball(readFileSync(tarball)).map(({ path, bytes }) => ({ path: path.replace(/^package\//, ''), bytes }));
  const manifest = JSON.parse(entries.find((entry) => entry.path === 'package.json').bytes.toString('utf8'));
  const unpacked = join(parent, 'node_modules', manifest.name);
  for (const { path, bytes } of entries) {
    mkdirSync(dirname(join(unpacked, path)), { recursive: true });
    writeFileSync(join(unpacked, path), bytes);
  }
  const { folder } = publishedPackages().find((each) => each.name === manifest.name);
  return { name: manifest.name, folder, tarball, unpacked, files: entries.map((entry) => entry.path).sort(), manifest };
}
