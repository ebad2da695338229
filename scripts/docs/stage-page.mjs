import { posix } from 'node:path';
import { inProse, sectionOf } from './markdown.mjs';
import { targetOf } from './pages.mjs';

/** Pages of wide tables, which need the room of the outline beside them. */
const WIDE = ['docs/comparison.md', 'docs/errors.md', 'docs/performance.md'];

const INCLUDE = /^<!-- include: (\S+?)#(\S+) -->$/gm;

/**
 * A page as the site builds it: sections of other pages in their places, links to where the site has what they name.
 *
 * @param {import('./pages.mjs').Page} page
 * @param {readonly import('./pages.mjs').Page[]} pages all of the site
 * @returns {{ text: string, pictures: string[], problems: string[] }} `pictures` are files of the repository that the page shows, to
 *   be had at `pictures/` and their names; `problems` are sentences
 */
export function stagePage(page, pages) {
  const pictures = [];
  const problems = [];
  const fault = (what) => problems.push(`${page.path}: ${what}`);

  const withLinks = (text, from) =>
    inProse(text, (prose) =>
      prose.replaceAll(/(!?)\[((?:[^\]\\]|\\.)*)\]\(([^)\s]+)\)/g, (link, isPicture, words, target) => {
        if (/^[a-z]+:|^\/api\//.test(target)) return link;
        const found = targetOf(from, target, pages);
        if (found === undefined) fault(`${target} is not there`);
        if (found?.page !== undefined) return `[${words}](/${found.page.route}${found.anchor})`;
        if (found?.file === undefined) return link;
        if (isPicture === '') return words;
        pictures.push(found.file);
        return `![${words}](/pictures/${posix.basename(found.file)})`;
      }),
    );

  const included = withLinks(page.text, page.path).replaceAll(INCLUDE, (_, file, id) => {
    const source = targetOf(page.path, file, pages)?.page;
    const section = source && sectionOf(source.text, id);
    if (section === undefined) fault(`there is no section #${id} in ${file}`);
    return withLinks(section ?? '', source?.path ?? page.path);
  });
  const text = included.replaceAll(/^ *<!-- example: .+ -->\n/gm, '');
  const shown = page.path === 'docs/errors.md' ? withAnchors(text) : text;
  return { text: WIDE.includes(page.path) ? `---\naside: false\n---\n\n${shown}` : shown, pictures, problems };
}

/**
 * Gives each row of the tables of errors an address: `#config-missing`, and `#core-policy-config-missing` as a code may stand in
 * several packages.
 */
export function withAnchors(text) {
  const known = new Set();
  let section = '';
  return text
    .split('\n')
    .map((line) => {
      section = /^## @bufferwise\/(\S+)/.exec(line)?.[1] ?? (line.startsWith('## ') ? '' : section);
      const [cell] = /^\| `[^|]+\|/.exec(line) ?? [];
      if (cell === undefined || section === '') return line;
      const codes = cell.replaceAll(/`([^`]+)`/g, (_, code) => {
        const ids = [`${section}-${code}`, ...(known.has(code) ? [] : [code])].map((id) => id.replaceAll('*', 'any'));
        known.add(code);
        const [href] = ids;
        return `${ids.map((id) => `<a id="${id}"></a>`).join('')}<a class="code-link" href="#${href}"><code>${code}</code></a>`;
      });
      return codes + line.slice(cell.length);
    })
    .join('\n');
}
