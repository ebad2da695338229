import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePorts } from '@bufferwise-internal/services';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { buildCommand } from './support/build-command.ts';

// A software device on a busy machine takes its time; nothing here is about speed.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

const MODEL = fileURLToPath(new URL('../../../models/whaler-1m/', import.meta.url));
const GRANITE = fileURLToPath(new URL('../../../internal/test-kit/oracle-models/granitehybrid-101.gguf', import.meta.url));
const COPIED = ['config.json', 'tokenizer.json', 'model.safetensors'] as const;

let command: string;
let folder: string;

beforeAll(async () => {
  command = await buildCommand();
  folder = await mkdtemp(join(tmpdir(), 'bufferwise-cli-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

interface Outcome {
  code: number;
  stdout: string;
  stderr: string;
}

function bufferwise(...args: string[]): Promise<Outcome> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [command, ...args],
      { maxBuffer: 2 ** 26, env: { ...process.env, NO_COLOR: '1' } },
      (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : (error.code as unknown as number), stdout, stderr });
      },
    );
  });
}

async function promptsFile(name: string, lines: readonly unknown[]): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n'));
  return path;
}

/** The demo model with one file changed. */
async function brokenModel(file: (typeof COPIED)[number], change: (bytes: Buffer) => Buffer): Promise<string> {
  const model = await mkdtemp(join(folder, 'model-'));
  for (const name of COPIED) {
    const bytes = await readFile(join(MODEL, name));
    await writeFile(join(model, name), name === file ? change(bytes) : bytes);
  }
  return model;
}

/** What a person sees of a mistake: nothing on stdout, one line on stderr, exit code 1, or 2 for a wrong command line. */
function expectOneClearError(outcome: Outcome, text: RegExp, code = 1): void {
  expect(outcome.stderr.trimEnd().split('\n'), outcome.stderr).toHaveLength(1);
  expect(outcome.stderr).toMatch(text);
  expect(outcome.stdout).toBe('');
  expect(outcome.code).toBe(code);
}

describe('bufferwise demo', () => {
  it('answers three requests the same with reuse and without, and says what reuse saved', async () => {
    const { code, stdout, stderr } = await bufferwise('demo', '--max-new-tokens', '8');
    expect(stderr).toBe('');
    expect(stdout).toContain(
      'Request B put 5 of its 550 prompt tokens through the model: exactly those after the shared beginning.',
    );
    expect(stdout).toContain('Every answer is the same, token by token, with reuse and without.');
    expect(stdout).toMatch(/│ B with reuse +│ +550 │ +545 │ +145 │ +545 │ +5 │/);
    expect(stdout).toContain('From the store came 544 of 551 prompt tokens (state: 544, window 128: 144, full attention: 544).');
    expect(stdout).toMatch(/First token after \d+ ms\. The first process, which began with nothing, took \d+ ms\./);
    expect(stdout).toContain('It answered the same, token by token.');
    expect(code).toBe(0);
  });

  it('fails when the second process finds nothing, and says so', async () => {
    const [port] = await freePorts(1);
    const address = `redis://127.0.0.1:${port}`;
    const { code, stdout, stderr } = await bufferwise('demo', '--max-new-tokens', '2', '--json', '--store', address);
    const { passed, secondProcess, withReuse } = JSON.parse(stdout);
    expect([code, passed, secondProcess.reusedTokens]).toEqual([1, false, 0]);
    expect(secondProcess.tokens).toEqual(withReuse[0].tokens);
    expect(stderr).toBe(
      `bufferwise demo: --store ${address} cannot be reached, or does not let this login in: prompts are computed without it\n`,
    );
  });
});

describe('bufferwise generate', () => {
  it('answers the expected prompts in order, token by token, each reusing what it can', async () => {
    const { prompts } = JSON.parse(await readFile(join(MODEL, 'expected.json'), 'utf8'));
    const file = await promptsFile(
      'expected.jsonl',
      prompts.map(({ text, ids }: { text: string; ids: number[] }, i: number) => (i % 2 ? { ids } : { text })),
    );
    const { code, stdout } = await bufferwise(
      'generate',
      '--model',
      MODEL,
      '--prompts',
      file,
      '--max-new-tokens',
      '40',
      '--json',
    );
    expect(code).toBe(0);
    const lines = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines).toHaveLength(prompts.length);
    lines.forEach((line, i) => {
      expect(line.ids).toEqual(prompts[i].ids);
      expect(line.tokens).toEqual(prompts[i].greedy);
      expect(line.text).toBe(prompts[i].greedyText);
      expect(line.logprobs).toHaveLength(40);
      expect(Math.max(...line.logprobs)).toBeLessThanOrEqual(0);
      expect(line.reusedTokens + line.computedTokens).toBe(line.ids.length);
      expect(line.groups.map(({ group, policy }: { group: number; policy: string }) => [group, policy])).toEqual([
        [0, 'required'],
        [1, 'required'],
        [2, 'required'],
      ]);
    });
    const [long, longA, longB] = lines.slice(-3);
    expect(longA.reusedTokens).toBe(long.ids.length);
    expect(longB.reusedTokens).toBe(long.ids.length);
  });
});

describe('bufferwise generate behind which nobody reads', () => {
  it('ends in order, with code 0', async () => {
    const file = await promptsFile(
      'many.jsonl',
      Array.from({ length: 50 }, (_, i) => ({ ids: [1 + i, 2, 3] })),
    );
    const args = ['generate', '--model', GRANITE, '--prompts', file, '--max-new-tokens', '20', '--json'];
    const child = spawn(process.execPath, [command, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    let told = '';
    child.stderr.on('data', (bytes) => {
      told += bytes;
    });
    child.stdout.once('data', () => child.stdout.destroy());
    expect([...(await once(child, 'exit')), told]).toEqual([0, null, '']);
  });
});

describe('bufferwise generate --store', () => {
  it('lets a second process begin with what the first one left, and answers the same', async () => {
    const store = join(await mkdtemp(join(folder, 'prefixes-')), 'store');
    const file = await promptsFile('stored.jsonl', [{ ids: Array.from({ length: 70 }, (_, i) => (i * 7) % 90) }]);
    const flags = ['--model', GRANITE, '--prompts', file, '--max-new-tokens', '5', '--store', store, '--json'];
    const [first, second] = [await bufferwise('generate', ...flags), await bufferwise('generate', ...flags)].map(
      ({ stdout, stderr }) => {
        expect(stderr).toBe('');
        return JSON.parse(stdout);
      },
    );
    expect([first.reusedTokens, first.computedTokens]).toEqual([0, 70]);
    expect(second.tokens).toEqual(first.tokens);
    // The last whole block before the last token at which a state was kept.
    expect([second.reusedTokens, second.computedTokens]).toEqual([64, 6]);
  });

  it('says once that a server is down, names no password, and answers all the same', async () => {
    const [port] = await freePorts(1);
    const prompt = { ids: Array.from({ length: 70 }, (_, i) => (i * 7) % 90) };
    const file = await promptsFile('down.jsonl', [prompt, prompt]);
    const store = `redis+cluster://me:hunter2@127.0.0.1:${port}`;
    const flags = ['--model', GRANITE, '--prompts', file, '--max-new-tokens', '2', '--json'];
    const { code, stdout, stderr } = await bufferwise('generate', ...flags, '--store', store, '--store-near', '1MiB');
    expect(code).toBe(0);
    expect(stderr).toBe(
      `bufferwise generate: --store redis+cluster://127.0.0.1:${port} cannot be reached, or does not let this login in: prompts are computed without it\n`,
    );
    expect(
      stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line).computedTokens),
    ).toEqual([70, 1]);
  });

  it('says what is wrong with an address, and names no password', async () => {
    const file = await promptsFile('stored.jsonl', [{ ids: [1, 2, 3] }]);
    const outcome = await bufferwise('generate', '--prompts', file, '--store', 'redis://me:hunter2@a:x');
    expectOneClearError(outcome, /--store: host 1 of the redis address is none; write HOST:PORT/, 2);
    expect(outcome.stderr).not.toContain('hunter2');
  });

  it('says what is wrong with a folder that cannot be used', async () => {
    const file = await promptsFile('stored.jsonl', [{ ids: [1, 2, 3] }]);
    const outcome = await bufferwise('generate', '--model', GRANITE, '--prompts', file, '--store', file);
    expectOneClearError(outcome, /--store .* cannot be used/);
  });
});

describe('bufferwise generate with a GGUF file', () => {
  const EXPECTED = GRANITE.replace('.gguf', '.expected.json');

  it('answers as the oracle does, with policies chosen by cost and with drafts', async () => {
    const { prompts } = JSON.parse(await readFile(EXPECTED, 'utf8')) as { prompts: { prompt: number[]; greedy: number[] }[] };
    const [{ prompt, greedy }] = prompts;
    const file = await promptsFile('gguf.jsonl', [{ ids: prompt }, { ids: prompt }]);
    const flags = ['--model', GRANITE, '--prompts', file, '--max-new-tokens', String(Math.min(8, greedy.length)), '--json'];
    const { code, stdout, stderr } = await bufferwise('generate', ...flags, '--policies', 'auto', '--drafts', '3');
    expect([code, stderr]).toEqual([0, '']);
    const lines = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    for (const line of lines) expect(line.tokens).toEqual(greedy.slice(0, 8));
    expect(lines[1].reusedTokens).toBe(prompt.length - 1);
  });

  it('refuses policies of roles that the model has not', async () => {
    const file = await promptsFile('gguf.jsonl', [{ ids: [1] }]);
    const outcome = await bufferwise('generate', '--model', GRANITE, '--prompts', file, '--policies', 'kv=optional');
    expectOneClearError(outcome, /cache.policies names kv, which no buffer of the model is called/);
  });

  it('refuses a file that only has the name', async () => {
    const path = await promptsFile('broken.gguf', ['GGUX']);
    const file = await promptsFile('gguf.jsonl', [{ ids: [1] }]);
    expectOneClearError(await bufferwise('generate', '--model', path, '--prompts', file), /GGUF/);
  });
});

describe('bufferwise doctor', () => {
  it('finds a device here', async () => {
    const { code, stdout } = await bufferwise('doctor', '--json');
    expect(code).toBe(0);
    const { ready, adapter, findings } = JSON.parse(stdout);
    expect(ready).toBe(true);
    expect(adapter.limits.maxStorageBufferBindingSize).toBeGreaterThanOrEqual(2 ** 27);
    expect(findings.map(({ name }: { name: string }) => name)).toEqual(
      expect.arrayContaining(['Node', 'device', 'limits', 'cache folder']),
    );
  });
});

describe('one clear error for', () => {
  const generate = async (model: string, prompts: readonly unknown[] = [{ text: 'Call me' }], ...more: string[]) =>
    bufferwise('generate', '--model', model, '--prompts', await promptsFile('prompts.jsonl', prompts), '--json', ...more);

  it('an unknown flag', async () => {
    expectOneClearError(await bufferwise('demo', '--fast'), /unknown flag --fast/, 2);
    expectOneClearError(await generate(MODEL, undefined, '--max-tokens', '4'), /unknown flag --max-tokens/, 2);
  });

  it('an unknown command, and a stray argument', async () => {
    expectOneClearError(await bufferwise('generat'), /unknown command "generat"/, 2);
    expectOneClearError(await bufferwise('demo', 'now'), /unexpected argument "now"/, 2);
  });

  it('a flag without its value, or with a bad one', async () => {
    expectOneClearError(await bufferwise('generate', '--model', MODEL), /--prompts/, 2);
    expectOneClearError(await generate(MODEL, undefined, '--max-new-tokens', 'many'), /--max-new-tokens is "many"/, 2);
  });

  it('a truncated safetensors file', async () => {
    const model = await brokenModel('model.safetensors', (bytes) => bytes.subarray(0, bytes.length - 1000));
    expectOneClearError(await generate(model), /model\.safetensors/);
  });

  it('a damaged safetensors header', async () => {
    const model = await brokenModel('model.safetensors', (bytes) => Buffer.concat([Buffer.alloc(8, 0xff), bytes.subarray(8)]));
    expectOneClearError(await generate(model), /model\.safetensors/);
  });

  it('a config that does not fit the weights', async () => {
    const model = await brokenModel('config.json', (bytes) =>
      Buffer.from(bytes.toString().replace('"mlp_hidden": 256', '"mlp_hidden": 128')),
    );
    expectOneClearError(await generate(model), /config does not fit the weights/);
  });

  it('a folder that is not there', async () => {
    expectOneClearError(await generate(join(folder, 'nowhere')), /cannot read .*nowhere/);
  });

  it('a prompt that is longer than the memory allows', async () => {
    const ids = Array.from({ length: 100_000 }, (_, i) => i % 1024);
    expectOneClearError(await generate(MODEL, [{ ids }]), /the prompt has 100000 tokens/);
  });

  it('prompts that are no prompts', async () => {
    expectOneClearError(await generate(MODEL, ['{"text": ']), /prompts\.jsonl:1 is not JSON/);
    expectOneClearError(await generate(MODEL, [{ text: 'a', ids: [1] }]), /either "text" or "ids"/);
    expectOneClearError(await generate(MODEL, [{ ids: [1024] }]), /token 0 of the prompt is 1024/);
    expectOneClearError(await generate(MODEL, [{ ids: [1.5] }]), /list of token ids/);
    expectOneClearError(await generate(MODEL, ['']), /holds no prompt/);
  });
});
