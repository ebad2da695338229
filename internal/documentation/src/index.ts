export { type FencedBlock, fencedBlocks } from './fenced-blocks.ts';
export { documentedPages, type MarkdownPage } from './markdown-pages.ts';
