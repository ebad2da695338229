import { join } from 'node:path';
import { publishedPackages, root } from '../run/workspace.mjs';

/** Entries that are started, not imported: they have no names to document. */
const STARTED = ['@bufferwise/adapter-connectors/opfs-worker'];

/**
 * Everything that people import, in the order of the packages.
 *
 * @returns {{ name: string, file: string }[]} what is written behind `from`, and its source, absolute
 */
export function entryPoints() {
  const packages = publishedPackages().filter(({ folder }) => folder.startsWith('packages/'));
  return packages.flatMap(({ name, folder, manifest }) =>
    Object.entries(manifest.exports)
      .filter(([, targets]) => targets['@bufferwise/source'] !== undefined)
      .map(([path, targets]) => ({ name: name + path.slice(1), file: join(root, folder, targets['@bufferwise/source']) }))
      .filter((entry) => !STARTED.includes(entry.name)),
  );
}
