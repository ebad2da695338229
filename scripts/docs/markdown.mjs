import { headingId } from '../../docs/.vitepress/heading-id.mjs';

/**
 * Applies a change to the prose of a page; blocks of code stay as they are.
 *
 * @param {string} text
 * @param {(prose: string) => string} change
 */
export function inProse(text, change) {
  return text
    .split(/^( *```[^\n]*\n[\s\S]*?^ *```[ \t]*$)/m)
    .map((part, i) => (i % 2 === 0 ? change(part) : part))
    .join('');
}

const HEADING = /^(#+)\s+(.+)$/;

/**
 * What stands below a heading, up to the next one of its level or above; its own headings as far down as `level` says.
 *
 * @param {string} text of a page
 * @param {string} id of the heading, as {@link headingId}
 * @returns {string | undefined} undefined where there is no such heading
 */
export function sectionOf(text, id) {
  const lines = text.split('\n');
  let isCode = false;
  let level = 0;
  const found = [];
  for (const line of lines) {
    if (/^ *```/.test(line)) isCode = !isCode;
    const [, marks, heading] = (isCode ? null : HEADING.exec(line)) ?? [];
    if (level === 0) {
      if (heading !== undefined && headingId(heading) === id) level = marks.length;
      continue;
    }
    if (marks !== undefined && marks.length <= level) break;
    found.push(line);
  }
  return level === 0 ? undefined : found.join('\n').trim();
}
