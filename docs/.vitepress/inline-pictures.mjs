import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Puts drawings (`![words](x.svg)`) into the page itself, so that they are light or dark as the page is. Their own colours, for
 * whoever looks at the file alone, are left out: those of the theme count.
 *
 * @param {import('vitepress').MarkdownRenderer} md
 * @param {string} folder with what the addresses of pictures name
 */
export function inlinePictures(md, folder) {
  const others = md.renderer.rules.image;
  md.renderer.rules.image = (tokens, at, options, env, self) => {
    const source = tokens[at].attrGet('src') ?? '';
    if (!source.startsWith('/') || !source.endsWith('.svg')) return others(tokens, at, options, env, self);
    const words = md.utils.escapeHtml(tokens[at].content);
    const drawing = readFileSync(join(folder, source), 'utf8')
      .replace(/<style>[\s\S]*?<\/style>/, '')
      .replace(/^<svg /, `<svg role="img" aria-label="${words}" `);
    return `<span class="drawing" v-pre>${drawing.replaceAll(/\n\s*/g, '')}</span>`;
  };
}
