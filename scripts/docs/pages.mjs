import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { root, sourceFiles } from '../run/workspace.mjs';

/**
 * A page of the site.
 *
 * @typedef {{ path: string, route: string, text: string }} Page `path` of its Markdown, relative to the root; `route` of the page
 *   without an ending: `packages/core-policy`, `index`
 */

/** Pages for whoever reads the repository: the first one, whose words the site has elsewhere, and those on private parts. */
const NOT_SHOWN = /^README\.md$|^internal\//;

/** @returns {Page[]} every page that people wrote, by path */
export function sitePages() {
  const paths = sourceFiles('.', (path) => path.endsWith('.md') && !/(?:^|\/)(?:CHANGELOG\.md$|\.changeset\/)/.test(path));
  return paths
    .filter((path) => !NOT_SHOWN.test(path))
    .map((path) => ({ path, route: routeOf(path), text: readFileSync(join(root, path), 'utf8') }));
}

/** `docs/errors.md` is at `errors`, `packages/core-policy/README.md` at `packages/core-policy`. */
export function routeOf(path) {
  const bare = path.replace(/\.md$/, '').replace(/(?<=\/)README$/, 'index');
  const shown = bare.replace(/^docs\//, '');
  return (shown === 'index' ? shown : shown.replace(/\/index$/, '')).toLowerCase();
}

/**
 * Where a link of a page leads on the site.
 *
 * @param {string} path of the page with the link
 * @param {string} target as it stands in the Markdown
 * @param {readonly Page[]} pages
 * @returns {{ page: Page, anchor: string } | { file: string } | undefined} a page, a file of the repository, or nothing that there is
 */
export function targetOf(path, target, pages) {
  const [, file, anchor = ''] = /^([^#]*)(#.*)?$/.exec(target);
  const found = file === '' ? path : posix.normalize(posix.join(dirname(path), file)).replace(/\/$/, '');
  const page = pages.find((each) => [found, `${found}/README.md`, `${found}/index.md`].includes(each.path));
  if (page !== undefined) return { page, anchor };
  if (found === 'README.md' || found === '.') return { page: pages.find(({ route }) => route === 'index'), anchor: '' };
  return existsSync(join(root, found)) ? { file: found } : undefined;
}
