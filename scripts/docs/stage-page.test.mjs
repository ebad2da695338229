import { describe, expect, it } from 'vitest';
import { headingId } from '../../docs/.vitepress/heading-id.mjs';
import { inProse, sectionOf } from './markdown.mjs';
import { routeOf } from './pages.mjs';
import { stagePage, withAnchors } from './stage-page.mjs';

const pages = [
  {
    path: 'docs/a.md',
    route: 'a',
    text: '# A\n\nSee [b](../packages/b/README.md#two), [b](../packages/b) and [a licence](../LICENSE).\n',
  },
  { path: 'docs/c.md', route: 'c', text: '# C\n\n<!-- include: ../packages/b/README.md#two -->\n' },
  { path: 'docs/lost.md', route: 'lost', text: '[gone](gone.md)\n\n<!-- include: a.md#nowhere -->\n' },
  { path: 'docs/drawn.md', route: 'drawn', text: '![words](pictures/layer.svg)\n\n```md\n[not a link](nowhere.md)\n```\n' },
  {
    path: 'packages/b/README.md',
    route: 'packages/b',
    text: '# B\n\n## One\n\n1\n\n## Two\n\n[up](../../docs/a.md)\n\n### Deep\n\n2\n\n## Three\n',
  },
];
const staged = (path) =>
  stagePage(
    pages.find((page) => page.path === path),
    pages,
  );

describe('a page on the site', () => {
  it('links to pages where the site has them, and says files in words', () => {
    expect(staged('docs/a.md').text).toBe('# A\n\nSee [b](/packages/b#two), [b](/packages/b) and a licence.\n');
  });

  it('has sections of other pages, whose links still lead where they led', () => {
    expect(staged('docs/c.md').text).toBe('# C\n\n[up](/a)\n\n### Deep\n\n2\n');
  });

  it('tells links and sections that there are not', () => {
    expect(staged('docs/lost.md').problems).toEqual([
      'docs/lost.md: gone.md is not there',
      'docs/lost.md: there is no section #nowhere in a.md',
    ]);
  });

  it('finds its pictures, and leaves code alone', () => {
    const { text, pictures, problems } = staged('docs/drawn.md');
    expect(text).toBe('![words](/pictures/layer.svg)\n\n```md\n[not a link](nowhere.md)\n```\n');
    expect([pictures, problems]).toEqual([['docs/pictures/layer.svg'], []]);
  });
});

it('routes are what people would type', () => {
  expect(['docs/index.md', 'docs/recipes/index.md', 'packages/b/README.md', 'CONTRIBUTING.md'].map(routeOf)).toEqual([
    'index',
    'recipes',
    'packages/b',
    'contributing',
  ]);
});

it('each code of an error has an address, alone where it comes first and with its package everywhere', () => {
  const page = (name) => `## @bufferwise/${name}\n\n| code | class |\n| --- | --- |\n| \`bad-index\` | \`A\` |\n`;
  const ids = [...withAnchors(page('one') + page('two')).matchAll(/id="([^"]+)"/g)].map(([, id]) => id);
  expect(ids).toEqual(['one-bad-index', 'bad-index', 'two-bad-index']);
});

it('headings have the ids that viewers of repositories give them', () => {
  expect(
    ['`bufferwise serve [MODEL]`', "A model's file", '`--advise TRACE`', 'Page tables: host or device'].map(headingId),
  ).toEqual(['bufferwise-serve-model', 'a-models-file', '--advise-trace', 'page-tables-host-or-device']);
});

it('a heading inside of code begins no section', () => {
  expect(sectionOf('# A\n\n```sh\n# B\n```\n\nend\n', 'a')).toBe('```sh\n# B\n```\n\nend');
  expect(sectionOf('# A\n\n```sh\n# B\n```\n', 'b')).toBeUndefined();
});

it('prose is what is not in a block of code', () => {
  expect(inProse('a\n```\na\n```\na', (text) => text.toUpperCase())).toBe('A\n```\na\n```\nA');
});
