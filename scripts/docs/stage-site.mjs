import { cpSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { CommandError } from '../run/process.mjs';
import { cacheFolder, root } from '../run/workspace.mjs';
import { sitePages } from './pages.mjs';
import { stagePage } from './stage-page.mjs';

/** Where VitePress finds the pages. */
export const stage = join(cacheFolder, 'docs');

/**
 * Puts the pages, their pictures and the site's own set-up where VitePress finds them.
 *
 * @returns {{ pages: import('./pages.mjs').Page[], problems: string[] }} `problems` are sentences
 */
export function stageSite() {
  const pages = sitePages();
  const staged = pages.map((page) => ({ page, ...stagePage(page, pages) }));
  rmSync(stage, { recursive: true, force: true });
  cpSync(join(root, 'docs/.vitepress'), join(stage, '.vitepress'), { recursive: true });
  cpSync(join(root, 'docs/public'), join(stage, 'public'), { recursive: true });
  for (const { page, text } of staged) write(join(stage, `${page.route}.md`), text);
  for (const file of new Set(staged.flatMap(({ pictures }) => pictures))) {
    const target = join(stage, 'public/pictures', basename(file));
    if (existsSync(target)) throw new CommandError(`Two pictures are called ${basename(file)}: give one another name.`);
    mkdirSync(dirname(target), { recursive: true });
    cpSync(join(root, file), target);
  }
  return { pages, problems: staged.flatMap((each) => each.problems) };
}

function write(file, text) {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}
