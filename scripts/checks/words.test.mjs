import { expect, test } from 'vitest';
import { oddWords } from './words.mjs';

const why = (text, path = 'docs/architecture.md') => oddWords(path, text).map((found) => found.why);
const home = ['', 'home', 'somebody', 'x.ts'].join('/');

test('a path of one machine is found, an address or a relative path is not', () => {
  expect(why(`see ${home}`)).toEqual(['a path of one machine']);
  expect(why('see https://example.com/home/somebody and ../home/x and src/work/queue.ts')).toEqual([]);
});

test('printing is found in the source of packages, outside of comments', () => {
  const print = ['console', 'log(1);'].join('.');
  expect(why(`  ${print}`, 'packages/a/src/x.ts')).toEqual(['printing from a package']);
  expect(why(`   * @example ${print}`, 'packages/a/src/x.ts')).toEqual([]);
  expect(why(print, 'apps/cli/src/x.ts')).toEqual([]);
});

test('the line is told, counted from 1', () => {
  expect(oddWords('README.md', `fine\n${home}\n`)).toMatchObject([{ path: 'README.md', line: 2 }]);
});
