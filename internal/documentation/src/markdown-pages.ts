import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The repository, absolute. */
export const root = fileURLToPath(new URL('../../../', import.meta.url));

export interface MarkdownPage {
  /** Relative to the root, with forward slashes. */
  readonly path: string;
  readonly text: string;
}

/** Folders without pages that anybody wrote. */
const MADE = new Set(['node_modules', 'dist', 'api', '.git', '.cache', '.changeset', '.turbo', 'coverage']);

/** Every page of documentation in the repository, by path; changesets and what tools made are left out. */
export function documentedPages(): MarkdownPage[] {
  const found: MarkdownPage[] = [];
  const visit = (folder: string): void => {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name);
      if (entry.isDirectory() && !MADE.has(entry.name)) visit(path);
      if (!entry.isFile() || !/(?<!CHANGELOG)\.md$/.test(entry.name)) continue;
      found.push({ path: relative(root, path).split(sep).join('/'), text: readFileSync(path, 'utf8') });
    }
  };
  visit(root);
  return found.sort((a, b) => (a.path < b.path ? -1 : 1));
}
