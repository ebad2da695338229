import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { runTool } from '../run/process.mjs';
import { root } from '../run/workspace.mjs';
import { deadLinks } from './dead-links.mjs';
import { stage, stageSite } from './stage-site.mjs';

/** Where the site is built to. */
export const siteFolder = join(root, 'docs/dist');

/** Where typedoc writes. */
const apiFolder = join(root, 'docs/api');

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
  // Links among API pages are typedoc's own, which has looked at those that comments make.
  const dead = deadLinks(siteFolder, (page, target) => !page.startsWith('api/') || target.startsWith('/'));
  return { problems: dead.join('\n'), numPages: pages.length };
}
