import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { BEHAVIOUR_CASES, BEHAVIOUR_IDS } from './behaviour-cases.ts';
import type { Coverage } from './covered.ts';
import { FAILURE_CASES, FAILURE_IDS } from './failure-cases.ts';

const packages = new URL('../../../', import.meta.url);
const texts = new Map<string, string>();

function textOf(file: string): string {
  const text = texts.get(file) ?? readFileSync(new URL(file, packages), 'utf8');
  texts.set(file, text);
  return text;
}

/** A quotation mark, the words, and on to the end of the literal: words of a title, not of code or of a comment. */
function hasTitle(file: string, title: string): boolean {
  const words = title.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replace(/'/g, "\\\\?'");
  return new RegExp(`(['\`"])(?:(?!\\1)[^\\n])*${words}(?:(?!\\1)[^\\n]|\\\\\\1)*\\1`).test(textOf(file));
}

for (const [what, ids, cases] of [
  ['behaviour', BEHAVIOUR_IDS, BEHAVIOUR_CASES],
  ['failures', FAILURE_IDS, FAILURE_CASES],
] as const satisfies [string, readonly string[], Readonly<Record<string, Coverage>>][]) {
  describe(`the cases of the reference on ${what}`, () => {
    test('are all in the map, once each, and no others', () => {
      expect(Object.keys(cases).sort()).toEqual([...ids].sort());
      expect(new Set(ids).size).toBe(ids.length);
    });

    test.each(ids.map((id) => [id, cases[id]] as const))(
      '%s has tests that are there, or a reason why it cannot arise',
      (_, coverage) => {
        if ('reason' in coverage) {
          expect(coverage.reason.length).toBeGreaterThan(30);
          return;
        }
        expect(coverage.length).toBeGreaterThan(0);
        const missing = coverage.filter(({ file, title }) => !hasTitle(file, title));
        expect(missing).toEqual([]);
      },
    );
  });
}

test('the map holds a hundred and fifty-two cases and fifty-eight failures', () => {
  expect([BEHAVIOUR_IDS.length, FAILURE_IDS.length]).toEqual([152, 58]);
});
