import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { documentedPages, fencedBlocks } from '@bufferwise-internal/documentation';
import { describe, expect, it } from 'vitest';
import type { Command } from '../src/command/command.ts';
import { COMMANDS } from '../src/command/commands.ts';
import { runOn } from './support/fake-terminal.ts';
import { shellCommands } from './support/shell-lines.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));

/** Every command that a page of documentation shows, with the place where it stands. */
const shown = documentedPages().flatMap(({ path, text }) =>
  fencedBlocks(text)
    .filter(({ language }) => ['sh', 'bash', 'shell'].includes(language))
    .flatMap((block) => shellCommands(block.code).map(({ line, words }) => ({ place: `${path}:${block.line + line}`, words }))),
);

/** Commands inside of sentences and tables: `npm run …`, `bufferwise …`. */
const said = documentedPages().flatMap(({ path, text }) =>
  text
    .replaceAll(/^ *```[\s\S]*?^ *```$/gm, (block) => block.replaceAll(/[^\n]/g, ''))
    .split('\n')
    .flatMap((line, i) =>
      [...line.matchAll(/`((?:npm run|npx bufferwise|bufferwise) [^`]+)`/g)].map(([, code]) => ({
        place: `${path}:${i + 1}`,
        words: code.split(/\s+/),
      })),
    ),
);

/** Scripts of the repository, and those that every package has. */
const scripts: Record<string, string> = { ...scriptsOf('apps/cli/package.json'), ...scriptsOf('package.json') };

/** Commands that are not ours, or of this repository alone: what they do is not for this test to say. */
const OTHERS = [
  'alias',
  'cat',
  'cd',
  'curl',
  'echo',
  'export',
  'git',
  'head',
  'mkdir',
  'nats-server',
  'node',
  'npm',
  'npx',
  'source',
];

/** The same commands, which do nothing once they have understood what was typed. */
const understanding: Command[] = COMMANDS.map((command) => ({ ...command, run: async () => 0 }));

const ours = shown.flatMap(({ place, words }) => {
  const typed = words[0] === 'npx' && words[1] === 'bufferwise' ? words.slice(1) : words;
  if (typed[0] === 'bufferwise') return [{ place, argv: typed.slice(1) }];
  const [npm, run, script, dashes, ...args] = typed;
  if (npm === 'npm' && run === 'run' && script === 'demo' && dashes === '--') return [{ place, argv: ['demo', ...args] }];
  return [];
});

describe('commands that the documentation shows', () => {
  it('are ours, or known', () => {
    const known = new Set([...OTHERS, 'bufferwise']);
    expect(shown.filter(({ words }) => !known.has(words[0])).map(({ place, words }) => `${place}: ${words[0]}`)).toEqual([]);
  });

  it('name scripts that there are', () => {
    const named = shown.filter(({ words: [npm, run] }) => npm === 'npm' && (run === 'run' || run === 'test'));
    expect(named.length).toBeGreaterThan(3);
    for (const { place, words } of named) expect(scripts, place).toHaveProperty([words[1] === 'test' ? 'test' : words[2]]);
  });

  it.for(ours)('$place: $argv is understood', async ({ argv }) => {
    expect(await runOn(understanding, argv)).toMatchObject({ code: 0, told: '' });
  });

  it('are right in the middle of a sentence, too: scripts, benches, commands and their flags exist', () => {
    const benches = readdirSync(join(root, 'packages')).flatMap((name) => filesIn(join(root, 'packages', name, 'bench')));
    for (const { place, words } of said) {
      const [program, ...rest] = words[0] === 'npx' ? words.slice(1) : words;
      if (program === 'npm' && rest[0] === 'run') {
        expect(scripts, place).toHaveProperty([rest[1]]);
        const name = rest.slice(2).find((word) => !word.startsWith('-'));
        if (rest[1] === 'bench' && name !== undefined && !/^[A-Z…]/.test(name)) {
          expect(
            benches.some((path) => path.includes(name)),
            `${place}: a bench called ${name}`,
          ).toBe(true);
        }
      }
      const command = COMMANDS.find(({ name }) => name === rest[0]);
      if (program !== 'bufferwise' || rest.length === 0 || /^[A-Z-]/.test(rest[0])) continue;
      expect(command, `${place}: bufferwise ${rest[0]}`).toBeDefined();
      for (const word of rest.filter((each) => each.startsWith('--') && each !== '--help')) {
        expect(Object.keys(command?.args ?? {}), `${place}: ${word}`).toContain(word.slice(2).replace(/=.*$/, ''));
      }
    }
  });

  it.for(plansWithOutput())('$place: plan prints what stands below it', async ({ argv, below }) => {
    const { code, printed } = await runOn(COMMANDS, argv);
    expect(code).toBe(0);
    const lines = printed.split('\n');
    let from = 0;
    for (const line of below.split('\n').filter((each) => each !== '…')) {
      const begin = line.replace(/ …$/, '');
      const at = lines.findIndex((each, i) => i >= from && (begin === line ? each === line : each.startsWith(begin)));
      expect(at, `"${line}", in this order`).toBeGreaterThanOrEqual(0);
      from = at + 1;
    }
  });
});

it('a flag that there is not would be found', async () => {
  expect(await runOn(understanding, ['plan', 'gemma-3-4b', '--memroy', '8GiB'])).toMatchObject({ code: 2 });
});

it('comments, quotes, pipes and redirections are told from words', () => {
  const code = `npm run demo   # all of it\ncurl host -d '{"a": "b # c"}' \\\n  --verbose > file.json\nsource <(bufferwise completion bash) && ls a#b`;
  expect(shellCommands(code)).toEqual([
    { line: 0, words: ['npm', 'run', 'demo'] },
    { line: 1, words: ['curl', 'host', '-d', '{"a": "b # c"}', '--verbose'] },
    { line: 3, words: ['source', '<(bufferwise completion bash)'] },
    { line: 3, words: ['ls', 'a#b'] },
  ]);
});

/** Each shown call of `plan` that reads no file, with the output that the next block shows: all of it, or parts between lines of `…`. */
function plansWithOutput(): { place: string; argv: string[]; below: string }[] {
  return documentedPages().flatMap(({ path, text }) => {
    const blocks = fencedBlocks(text);
    return blocks.flatMap(({ language, code, line }, i) => {
      const [command, ...others] = language === 'sh' ? shellCommands(code) : [];
      const next = blocks[i + 1];
      if (command === undefined || others.length > 0 || next?.language !== 'text') return [];
      const [program, ...argv] = command.words
        .join(' ')
        .replace(/ --svg \S+/, '')
        .split(' ');
      if (program !== 'bufferwise' || argv[0] !== 'plan' || argv.includes('--advise')) return [];
      return [{ place: `${path}:${line}`, argv, below: next.code }];
    });
  });
}

function filesIn(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)) : [];
}

function scriptsOf(path: string): Record<string, string> {
  return JSON.parse(readFileSync(join(root, path), 'utf8')).scripts;
}
