import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/** What plugins there are. */
export const KINDS = ['page-store', 'connector', 'transport', 'consumer'];

const here = dirname(fileURLToPath(import.meta.url));
const templates = join(here, 'templates');
const repository = dirname(dirname(here));
const SUFFIX = '.template';

/**
 * Writes a new package from the templates of its kind.
 *
 * @param {{ name?: string, kind?: string, into?: string }} options `name` in kebab case; `into` is the folder it is made in, by
 *   default `packages` of this repository
 * @returns {{ folder: string, files: string[] }} `files` relative to `folder`
 * @throws {Error} on a bad name or kind, and when there is such a folder already; nothing was written then
 */
export function createAdapter({ name, kind, into = join(repository, 'packages') }) {
  if (name === undefined || !/^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/.test(name))
    throw new Error(`The name of a package is in lower case with hyphens, such as adapter-tape; got ${name ?? 'none'}.`);
  if (!KINDS.includes(kind)) throw new Error(`There is no kind ${kind ?? '(none given)'}.`);
  const folder = join(into, name);
  if (existsSync(folder)) throw new Error(`${folder} is there already: take another name, or remove it.`);
  const files = ['common', kind].flatMap((part) =>
    filesBelow(join(templates, part)).map((path) => ({ path, text: readFileSync(join(templates, part, path), 'utf8') })),
  );
  for (const { path, text } of files) {
    const target = join(folder, targetName(path, name));
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, filledIn(text, name, kind));
  }
  return { folder, files: files.map(({ path }) => targetName(path, name)).sort() };
}

const targetName = (path, name) => path.slice(0, -SUFFIX.length).replaceAll('plugin', name);

/** Placeholders: `__NAME__` of the package, `__Class__` and `__kind__` of what is in it. */
function filledIn(text, name, kind) {
  const className = name.replace(/(?:^|-)(.)/g, (_, first) => first.toUpperCase());
  return text.replaceAll('__NAME__', name).replaceAll('__Class__', className).replaceAll('__kind__', kind);
}

function filesBelow(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(SUFFIX))
    .map((entry) => relative(folder, join(entry.parentPath ?? entry.path, entry.name)));
}
