import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { COMMANDS } from '../src/command/commands.ts';
import { isOneLine, runOn } from './support/fake-terminal.ts';

// A software device on a busy machine takes its time; nothing here is about speed.
vi.setConfig({ testTimeout: 600_000, hookTimeout: 300_000 });

const GRANITE = fileURLToPath(new URL('../../../internal/test-kit/oracle-models/granitehybrid-101.gguf', import.meta.url));
const OTHER = fileURLToPath(new URL('../../../internal/test-kit/oracle-models/mamba2-101.gguf', import.meta.url));

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bufferwise-prefix-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const bufferwise = (...words: string[]) => runOn(COMMANDS, words);

/** The same, for what has to go well. */
async function wellDone(...words: string[]): Promise<string> {
  const { code, printed, told } = await bufferwise(...words);
  expect([told, code]).toEqual(['', 0]);
  return printed;
}

async function expectRefusal(words: string[], reason: RegExp): Promise<void> {
  const outcome = await bufferwise(...words);
  expect(outcome.told).toMatch(reason);
  expect([isOneLine(outcome), outcome.code]).toEqual([true, 1]);
}

async function promptsFile(...prompts: { ids: number[] }[]): Promise<string> {
  const path = join(await mkdtemp(join(folder, 'prompts-')), 'prompts.jsonl');
  await writeFile(path, prompts.map((prompt) => JSON.stringify(prompt)).join('\n'));
  return path;
}

const LONG = { ids: Array.from({ length: 70 }, (_, i) => (i * 11) % 90) };

describe('bufferwise prefix', () => {
  it('carries what one store lacks into another, for the same model alone', async () => {
    const place = await mkdtemp(join(folder, 'prefix-'));
    const [path, store] = [join(place, 'one.bwprefix'), join(place, 'store')];
    const which = ['--prompts', await promptsFile({ ids: [1, 2, 3] }, LONG), '--prompt', '2'];
    const exported = await wellDone('prefix', 'export', path, '--model', GRANITE, ...which, '--salt', '9');
    expect(exported).toMatch(/one\.bwprefix: 64 tokens, \d+ pages of .+ in .+\n$/);

    const info = JSON.parse(await wellDone('prefix', 'inspect', path, '--verify', '--json'));
    expect(info).toMatchObject({ modelName: 'granitehybrid-101.gguf', salted: true, exact: true, tokensPerBlock: 16 });
    expect(info.tokens).toEqual(LONG.ids.slice(0, 64));
    const shown = await wellDone('prefix', 'inspect', path);
    expect(shown).toMatch(/^model +granitehybrid-101\.gguf\n/);
    expect(shown).toMatch(/\nstate +required +\d+ +1 +/);

    const importing = ['prefix', 'import', path, '--store', store];
    await expectRefusal([...importing, '--model', OTHER, '--salt', '9'], /is of another model/);
    await expectRefusal([...importing, '--model', GRANITE], /exported under a salt, and none was given/);
    const imported = await wellDone(...importing, '--model', GRANITE, '--salt', '9', '--store-compress');
    expect(imported).toContain(`64 tokens, ${info.numPages} pages stored, 0 were there`);

    // From a store, without computing: what was imported under the salt is exported again, byte by byte the same.
    const again = join(place, 'two.bwprefix');
    await wellDone('prefix', 'export', again, '--model', GRANITE, ...which, '--salt', '9', '--store', store, '--store-compress');
    expect(await readFile(again)).toEqual(await readFile(path));
  });

  it('lets generate begin with it, and puts numbers in 8 bits only where they are asked for', async () => {
    const place = await mkdtemp(join(folder, 'prefix-'));
    const path = join(place, 'one.bwprefix');
    const common = ['--model', GRANITE, '--prompts', await promptsFile(LONG)];
    const answer = async (...flags: string[]) =>
      JSON.parse(await wellDone('generate', ...common, '--max-new-tokens', '5', '--json', ...flags));
    const cold = await answer();
    await wellDone('prefix', 'export', path, ...common, '--encoding', 'int8');
    const store = ['--store', join(place, 'store')];
    await expectRefusal(['prefix', 'import', path, '--model', GRANITE, ...store], /has inexact pages, and .* is for exact ones/);
    await wellDone('prefix', 'import', path, '--model', GRANITE, ...store, '--store-int8');
    const warm = await answer(...store, '--store-int8');
    expect([warm.reusedTokens, warm.tokens]).toEqual([64, cold.tokens]);
    expect((await answer(...store)).reusedTokens).toBe(0);
  });
});
