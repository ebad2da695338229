import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Plugin } from 'vite';
import { publishedPackages, root, sourceFiles } from '../run/workspace.mjs';

/** Source and built file of everything that packages let others import, absolute. */
const doors = new Map<string, string>(
  publishedPackages().flatMap(({ folder, manifest }) =>
    Object.values<Record<string, string>>(manifest.exports)
      .filter((targets) => targets['@bufferwise/source'] !== undefined)
      .map((targets): [string, string] => [
        join(root, folder, targets['@bufferwise/source']),
        join(root, folder, targets.default),
      ]),
  ),
);

const isTest = (path: string) => /\.test\.ts$|\/packages\/[^/]+\/test\//.test(path);

/** Tests see their own package, too, as it is shipped. Without the condition for the source all others come so by themselves. */
export const builtPackages: Plugin = {
  name: 'built-packages',
  enforce: 'pre',
  resolveId(source, importer) {
    if (!source.startsWith('.') || importer === undefined || !isTest(importer)) return null;
    return doors.get(join(dirname(importer), source)) ?? null;
  },
};

/**
 * Unit tests that meet a package as its users do, through its root or another package's name. Only these say more when they run
 * on what is shipped; the others know the inside. Paths relative to the root.
 */
export function testsThroughDoors(): string[] {
  const entersDoor = (path: string) => {
    const text = readFileSync(join(root, path), 'utf8');
    return [...text.matchAll(/from '([^']+)'/g)].some(
      ([, source]) => source.startsWith('@bufferwise/') || doors.has(join(root, dirname(path), source)),
    );
  };
  return sourceFiles('packages', (path) => /(?<!\.(?:gpu|browser|services))\.test\.ts$/.test(path) && entersDoor(path));
}
