import { expect, it } from 'vitest';
import { examplePrograms } from './example-program.ts';
import { fencedBlocks } from './fenced-blocks.ts';

const FENCE = '```';
const page = (...lines: string[]) => ({ path: 'docs/page.md', text: lines.join('\n') });

it('a block has its language, its line and the mark above it, and loses the indent of its list', () => {
  const { text } = page(
    '# A page',
    '',
    '<!-- example: gpu -->',
    `${FENCE}ts`,
    'one();',
    FENCE,
    `  ${FENCE}sh`,
    '  npm test',
    `  ${FENCE}`,
  );
  expect(fencedBlocks(text)).toEqual([
    { language: 'ts', line: 5, code: 'one();', mark: 'gpu' },
    { language: 'sh', line: 8, code: 'npm test', mark: '' },
  ]);
});

it('a block that never ends is told with its line', () => {
  expect(() => fencedBlocks(`text\n${FENCE}ts\ncode`)).toThrow('line 2 never ends');
});

it('a block that continues the one above is one program with it, each line where the page has it', () => {
  const text = page('', `${FENCE}ts`, 'const a = 1;', FENCE, 'words', '<!-- example: continues -->', `${FENCE}ts`, 'a;', FENCE);
  const [program, ...others] = examplePrograms(text);
  expect(others).toEqual([]);
  expect(program.place).toBe('docs/page.md:3');
  expect(program.source.split('\n').slice(0, 8)).toEqual(['', '', 'const a = 1;', '', '', '', '', 'a;']);
});

it('what is only compiled says why, and any other word above a block is refused', () => {
  const marked = (mark: string) => examplePrograms(page('', `<!-- example: ${mark} -->`, `${FENCE}ts`, 'a;', FENCE));
  expect(marked('not run, it needs a key')[0]).toMatchObject({ runs: 'never', reason: 'it needs a key' });
  expect(() => marked('not run')).toThrow('say "continues", "gpu", or "not run, REASON"');
  expect(() => marked('continues')).toThrow('continues nothing');
});
