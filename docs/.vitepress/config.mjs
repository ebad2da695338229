import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitepress';
import { headingId } from './heading-id.mjs';
import { inlinePictures } from './inline-pictures.mjs';

/** The staged pages; this file lies in a copy of `docs/.vitepress` beside them (scripts/docs/build-site.mjs). */
const pages = dirname(dirname(fileURLToPath(import.meta.url)));

const page = (text, link) => ({ text, link: `/${link}` });

/** Pages that come later in the work of others join by themselves. */
const ifThere = (text, link) => (existsSync(join(pages, `${link}.md`)) ? [page(text, link)] : []);

/** All pages of a folder by the title that they have. */
const pagesOf = (folder) =>
  readdirSync(join(pages, folder))
    .filter((name) => name.endsWith('.md'))
    .sort()
    .map((name) => {
      const [, title] = /^# (.+)$/m.exec(readFileSync(join(pages, folder, name), 'utf8')) ?? [];
      return page(title.replaceAll('`', ''), `${folder}/${name.replace(/\.md$/, '')}`);
    });

const sidebar = [
  {
    text: 'Understand',
    items: [
      page('The idea in pictures', 'idea'),
      page('Compared with others', 'comparison'),
      page('Architecture', 'architecture'),
      page('Performance', 'performance'),
      page('Glossary', 'glossary'),
    ],
  },
  {
    text: 'Start',
    items: [
      page('An engine in Node', 'start/node'),
      page('An engine in the browser', 'start/browser'),
      page('An adapter', 'write-an-adapter'),
      page('A server, as operator', 'start/operator'),
      ...ifThere('Examples', 'examples'),
    ],
  },
  {
    text: 'Recipes by model',
    items: [
      page('Choosing policies', 'recipes'),
      page('Full attention', 'recipes/full-attention'),
      page('Sliding windows', 'recipes/sliding-windows'),
      page('Latent attention', 'recipes/latent-attention'),
      page('Mamba-2 and hybrids', 'recipes/mamba-2'),
      page('Gated delta nets', 'recipes/gated-delta-nets'),
    ],
  },
  {
    text: 'Come over',
    items: [page('From layers to buffers', 'migration'), ...ifThere('Upgrading', 'upgrading')],
  },
  {
    text: 'Look up',
    items: [page('Errors', 'errors'), { text: 'API', link: '/api/index.html', target: '_self' }],
  },
  { text: 'Packages', collapsed: false, items: pagesOf('packages') },
  { text: 'Apps', collapsed: true, items: [...pagesOf('apps'), ...ifThere('The demo model', 'models/whaler-1m')] },
  { text: 'Decisions', collapsed: true, items: [page('All decisions', 'decisions'), ...pagesOf('decisions')] },
  { text: 'Work on it', collapsed: true, items: [page('Contributing', 'contributing')] },
];

export default defineConfig({
  title: 'Bufferwise',
  description: 'A KV-cache manager for LLM inference on WebGPU in which each buffer of a layer has its own reuse policy',
  lang: 'en-GB',
  cleanUrls: false,
  // API pages come from another tool; scripts/docs/dead-links.mjs looks at the links to them, and at all anchors.
  ignoreDeadLinks: [/^\/api\//],
  head: [['link', { rel: 'icon', type: 'image/svg+xml', href: '/mark.svg' }]],
  markdown: {
    theme: { light: 'github-light', dark: 'github-dark' },
    anchor: { slugify: headingId },
    config: (md) => md.use(inlinePictures, join(pages, 'public')),
  },
  themeConfig: {
    logo: '/mark.svg',
    search: { provider: 'local' },
    outline: { level: [2, 3] },
    docFooter: { prev: 'Before', next: 'Next' },
    nav: [
      { text: 'Idea', link: '/idea' },
      { text: 'Start', link: '/start/node', activeMatch: '/start/|/write-an-adapter' },
      { text: 'Recipes', link: '/recipes', activeMatch: '/recipes' },
      { text: 'Performance', link: '/performance' },
      { text: 'API', link: '/api/index.html', target: '_self' },
    ],
    sidebar,
  },
  vite: {
    // Everything comes from this folder, whatever is above it.
    envDir: pages,
    build: { chunkSizeWarningLimit: 2000 },
  },
});
