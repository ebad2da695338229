/** Where a case is tried: a file below `packages/`, and words from the title of a test in it. */
export interface Place {
  readonly file: string;
  readonly title: string;
}

/** The tests that fail when the rule of a case breaks, or why the case cannot arise here. */
export type Coverage = readonly Place[] | { readonly reason: string };

/** Ids of cases that share a beginning: `ids('M', 3)` is M1, M2, M3. */
export function ids(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, i) => `${prefix}${i + 1}`);
}

/** The same with letters behind: `lettered('P1', 'abc')` is P1a, P1b, P1c. */
export function lettered(prefix: string, letters: string): string[] {
  return [...letters].map((letter) => prefix + letter);
}

export function reason(text: string): Coverage {
  return { reason: text };
}

/** Titles of tests in one file below `test/` of this package, or with a leading `/` below `packages/`. */
export function at(file: string, ...titles: string[]): readonly Place[] {
  const path = file.startsWith('/') ? file.slice(1) : `cache-manager/${file}`;
  return titles.map((title) => ({ file: `${path}.test.ts`, title }));
}
