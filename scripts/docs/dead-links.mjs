import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { filesBelow } from './files-below.mjs';

/**
 * Links inside the built site that lead nowhere: no such file, or no such place in it.
 *
 * @param {string} folder of the site, absolute
 * @param {(page: string, target: string) => boolean} counts which links are looked at, by the name of their page relative to the folder and what they lead to
 * @returns {string[]} one sentence each
 */
export function deadLinks(folder, counts) {
  const ids = new Map();
  const idsOf = (file) => {
    if (!ids.has(file)) {
      const html = readFileSync(file, 'utf8');
      ids.set(file, new Set([...html.matchAll(/\s(?:id|name)="([^"]+)"/g)].map(([, id]) => decoded(id))));
    }
    return ids.get(file);
  };
  const problems = [];
  for (const page of filesBelow(folder).filter((file) => file.endsWith('.html'))) {
    const name = relative(folder, page).replaceAll('\\', '/');
    const html = readFileSync(page, 'utf8');
    for (const [, href] of html.matchAll(/<(?:a|img|link|script)\s[^>]*?(?:href|src)="([^"]+)"/g)) {
      const target = decoded(href);
      if (/^[a-z]+:|^\/\//.test(target) || !counts(name, target)) continue;
      const [path, anchor] = target.split('#');
      const file = path === '' ? page : fileOf(path.startsWith('/') ? join(folder, path) : join(dirname(page), path));
      if (file === undefined) problems.push(`${name}: ${target} is not there`);
      else if (anchor && file.endsWith('.html') && !idsOf(file).has(decodeURIComponent(anchor))) {
        problems.push(`${name}: there is no place #${anchor} in ${relative(folder, file)}`);
      }
    }
  }
  return [...new Set(problems)];
}

const decoded = (text) => text.replaceAll('&amp;', '&').replaceAll('&quot;', '"').replaceAll('&#39;', "'");

function fileOf(path) {
  const bare = path.replace(/\?.*$/, '');
  return [bare, join(bare, 'index.html'), `${bare}.html`].find((each) => /\.\w+$/.test(each) && existsSync(each));
}
