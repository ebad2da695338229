import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The repository, absolute. */
export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** Where everything that can be made again is kept; git ignores it. */
export const cacheFolder = join(root, '.cache');

const PARTS = ['packages', 'apps', 'internal'];
/** A package by itself. */
const EXAMPLES = 'examples';

/**
 * The packages of the workspace in order of their folders.
 *
 * @returns {{ name: string, folder: string, manifest: Record<string, any>, published: boolean }[]} `folder` is relative to the
 *   root with forward slashes: `packages/core-policy`
 */
export function workspacePackages() {
  return [...PARTS.flatMap((part) => foldersIn(join(root, part)).map((name) => `${part}/${name}`)), EXAMPLES]
    .filter((folder) => existsSync(join(root, folder, 'package.json')))
    .map((folder) => {
      const manifest = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'));
      return { name: manifest.name, folder, manifest, published: manifest.private !== true };
    });
}

/** What people install: the libraries, and the command. */
export const publishedPackages = () => workspacePackages().filter((each) => each.published);

/** What people import. */
export const libraries = () => publishedPackages().filter(({ folder }) => folder.startsWith('packages/'));

function foldersIn(folder) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort();
}

/** Folders in which nothing was written by a person. */
const MADE = new Set(['node_modules', 'dist', '.git', '.cache', '.turbo', 'coverage', 'api']);

/**
 * Every file that people write, below `folder`, as sorted paths relative to the root with forward slashes.
 *
 * @param {string} folder relative to the root
 * @param {(path: string) => boolean} wanted
 */
export function sourceFiles(folder, wanted = () => true) {
  const found = [];
  const visit = (absolute) => {
    for (const entry of readdirSync(absolute, { withFileTypes: true })) {
      const path = join(absolute, entry.name);
      if (entry.isDirectory()) {
        if (!MADE.has(entry.name)) visit(path);
      } else if (entry.isFile()) {
        const name = relative(root, path).split(sep).join('/');
        if (wanted(name)) found.push(name);
      }
    }
  };
  if (existsSync(join(root, folder))) visit(join(root, folder));
  return found.sort();
}
