/** A block of code in a page, between fences. */
export interface FencedBlock {
  /** What stands behind the opening fence: `ts`, `sh`, empty. */
  readonly language: string;
  /** Line of the page on which the code begins, from 1. */
  readonly line: number;
  readonly code: string;
  /** What an HTML comment on the line above the fence says behind `example:`, empty without one. */
  readonly mark: string;
}

const FENCE = /^( *)```(\S*)\s*$/;
const MARK = /^ *<!-- example: (.+) -->$/;

/** The blocks of a page from top to bottom. Indented fences, as in lists, lose their indent. */
export function fencedBlocks(text: string): FencedBlock[] {
  const blocks: FencedBlock[] = [];
  const lines = text.split('\n');
  for (let i = 0; i < lines.length; i++) {
    const [opening, indent, language] = FENCE.exec(lines[i]) ?? [];
    if (opening === undefined) continue;
    const end = lines.findIndex((line, at) => at > i && line.trim() === '```');
    if (end < 0) throw new Error(`The block that begins in line ${i + 1} never ends.`);
    const above = MARK.exec(lines[i - 1] ?? '') ?? MARK.exec(lines[i - 2] ?? '');
    const code = lines.slice(i + 1, end).map((line) => (line.startsWith(indent) ? line.slice(indent.length) : line));
    blocks.push({ language, line: i + 2, code: code.join('\n'), mark: above?.[1] ?? '' });
    i = end;
  }
  return blocks;
}
