import { cpSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { CommandError, runTool } from '../run/process.mjs';
import { cacheFolder, root } from '../run/workspace.mjs';
import { deadLinks } from './dead-links.mjs';
import { sitePages } from './pages.mjs';
import { stagePage } from './stage-page.mjs';

/** Where the site is built to. */
export const siteFolder = join(root, 'docs/dist');

/** Where typedoc writes. */
const apiFolder = join(root, 'docs/api');

const stage = join(cacheFolder, 'docs');

/**
 * Builds the documentation: API pages and guides, at the same time, into one folder that any web server can serve.
 *
 * @returns {Promise<{ problems: string, numPages: number }>} `problems` is empty when all is well
 */
export async function buildSite() {
  const { pages, problems } = stageSite();
  const [api, guides] = await Promise.all([
    runTool('typedoc', [], { capture: true }),
    problems.length > 0
      ? { code: 0, output: '' }
      : runTool('vitepress', ['build', stage, '--outDir', siteFolder], { capture: true }),
  ]);
  for (const { code, output } of [api, guides]) if (code !== 0) problems.push(output);
  if (problems.length > 0) return { problems: problems.join('\n'), numPages: pages.length };
  cpSync(apiFolder, join(siteFolder, 'api'), { recursive: true });
  return { problems: deadLinks(siteFolder, (name) => !name.startsWith('api/')).join('\n'), numPages: pages.length };
}

/** Puts the pages where VitePress finds them. */
function stageSite() {
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
