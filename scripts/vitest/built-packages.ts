import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Plugin } from 'vite';
import { libraries, root, sourceFiles } from '../run/workspace.mjs';

/** Source and built file of everything that packages let others import, absolute. */
const doors = new Map<string, string>(
  libraries().flatMap(({ folder, manifest }) =>
    Object.values<Record<string, string>>(manifest.exports)
      .filter((targets) => targets['@bufferwise/source'] !== undefined)
      .map((targets): [string, string] => [
        join(root, folder, targets['@bufferwise/source']),
        join(root, folder, targets.default),
      ]),
  ),
);

const isTest = (path: string) => /(?:\.test|-rig)\.ts$|\/packages\/[^/]+\/test\//.test(path);

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
 * Unit tests that say something about what is shipped: those that meet a package through its root, as its users do, or other
 * packages by their names. Left out are tests that also load the inside of a package that they enter by its door: they would
 * have two copies of it. Paths relative to the root.
 */
export function testsThroughDoors(): string[] {
  return sourceFiles('packages', (path) => /(?<!\.(?:gpu|browser|services))\.test\.ts$/.test(path)).filter((path) => {
    const { doors, inside, others } = ways(join(root, path));
    return inside ? others && !doors : doors || others;
  });
}

/** What a test and the test code it imports load: doors of their own package, files of its inside, other packages. */
function ways(file: string, seen = new Set<string>()): { doors: boolean; inside: boolean; others: boolean } {
  const found = { doors: false, inside: false, others: false };
  seen.add(file);
  for (const source of loadedBy(readFileSync(file, 'utf8'))) {
    const target = join(dirname(file), source);
    if (!source.startsWith('.')) found.others ||= source.startsWith('@bufferwise/');
    else if (doors.has(target)) found.doors = true;
    else if (!isTest(target)) found.inside ||= target.endsWith('.ts');
    else if (!seen.has(target)) {
      const further = ways(target, seen);
      found.doors ||= further.doors;
      found.inside ||= further.inside;
      found.others ||= further.others;
    }
  }
  return found;
}

/** Sources of the imports that are more than types. */
function loadedBy(text: string): string[] {
  const imports = text.matchAll(/^(?:import|export)\s+(?!type\b)(?:[^;'"]*?\sfrom\s+)?'([^']+)'/gm);
  return [...imports].map(([, source]) => source);
}
