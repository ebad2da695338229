import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { deadLinks } from './dead-links.mjs';

function site(files) {
  const folder = mkdtempSync(join(tmpdir(), 'bufferwise-site-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const [name, html] of Object.entries(files)) {
    mkdirSync(join(folder, name, '..'), { recursive: true });
    writeFileSync(join(folder, name), html);
  }
  return folder;
}

it('links to pages, places and the outside are well; those to no file and to no place are told', () => {
  const folder = site({
    'index.html':
      '<a href="/a/b.html#one">x</a><a href="a/b.html">x</a><a href="https://elsewhere">x</a><a href="#here" id="here">x</a>',
    'a/b.html':
      '<h2 id="one">1</h2><a href="../index.html">x</a><a href="/gone.html">x</a><a class="l" href="/index.html#there">x</a>',
    'api/x.html': '<a href="nowhere.html">x</a><a href="/a/b.html#two">x</a>',
  });
  expect(deadLinks(folder, (page, target) => !page.startsWith('api/') || target.startsWith('/')).sort()).toEqual([
    'a/b.html: /gone.html is not there',
    'a/b.html: there is no place #there in index.html',
    'api/x.html: there is no place #two in a/b.html',
  ]);
});
