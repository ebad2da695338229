import { spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { COMMANDS } from '../src/command/commands.ts';
import { benchScript } from '../src/commands/bench.ts';
import { EXAMPLE_MODELS } from '../src/plan/example-models.ts';
import { Unheard } from '../src/terminal/terminal.ts';
import { type FakeTerminalOptions, isOneLine, runOn } from './support/fake-terminal.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bufferwise-commands-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const bufferwise = (line: string, options?: FakeTerminalOptions) => runOn(COMMANDS, line === '' ? [] : line.split(' '), options);

/** Three conversations of 64 tokens: the second shares 48 of the first, the third is the first again. */
async function traceFile(): Promise<string> {
  const path = join(folder, 'trace.jsonl');
  const input = (from: number, count: number) => Array.from({ length: count }, (_, i) => from + i);
  const lines = [
    { prefix_of: -1, prefix_length: 0, input: input(100, 64), output: [1, 2, 3] },
    { prefix_of: 0, prefix_length: 48, input: input(500, 16), output: [4] },
    { prefix_of: 0, prefix_length: 64, input: [], output: [5, 6] },
  ];
  await writeFile(path, lines.map((line) => JSON.stringify(line)).join('\n'));
  return path;
}

/** Prompts of 512 tokens, no two alike. */
async function longTrace(numRequests: number): Promise<string> {
  const path = join(folder, `long-${numRequests}.jsonl`);
  const line = (id: number) => JSON.stringify({ input_length: 512, output_length: 64, hash_ids: [id] });
  await writeFile(path, Array.from({ length: numRequests }, (_, i) => line(i)).join('\n'));
  return path;
}

describe('help', () => {
  const topics = ['', ...COMMANDS.map(({ name }) => name)];

  it.each(topics.flatMap((topic) => [60, 120].map((columns) => [topic, columns] as const)))(
    'of %s fits into %i columns',
    async (topic, columns) => {
      const { code, printed, told } = await bufferwise(`${topic} --help`.trim(), { columns });
      expect([code, told]).toEqual([0, '']);
      // An example is there to be copied, so its line is not broken.
      const lines = printed.split('\n').filter((line) => !line.startsWith('  bufferwise') && !line.startsWith('  source'));
      expect(lines.filter((line) => line.length > columns)).toEqual([]);
      await expect(printed).toMatchFileSnapshot(`snapshots/help-${topic || 'main'}-${columns}.txt`);
    },
  );

  it('has examples of every command, each a line of it', () => {
    for (const { examples, name } of COMMANDS) {
      expect(examples.length, name).toBeGreaterThan(0);
      for (const { line } of examples) expect(line).toMatch(new RegExp(`bufferwise ${name}\\b`));
    }
  });

  it('is the same however it is asked for', async () => {
    const { printed } = await bufferwise('plan --help');
    expect((await bufferwise('help plan')).printed).toBe(printed);
    expect((await bufferwise('plan gemma3 -h')).printed).toBe(printed);
    expect((await bufferwise('')).printed).toBe((await bufferwise('help')).printed);
  });

  it('has colours for a terminal only', async () => {
    const code = String.fromCharCode(27);
    expect((await bufferwise('plan --help', { hasColors: true })).printed).toContain(`${code}[1mUsage`);
    expect((await bufferwise('plan --help')).printed).not.toContain(code);
  });
});

describe('exit code 2, and one line, for', () => {
  it.each([
    ['an unknown command', 'pland', /unknown command "pland"; there are plan, replay/],
    ['help of an unknown command', 'help pland', /unknown command "pland"/],
    ['an unknown flag', 'plan gemma3 --fast', /unknown flag --fast/],
    ['a stray argument', 'plan gemma3 llama', /unexpected argument "llama"/],
    ['a missing operand', 'plan', /MODEL/],
    ['a flag without its value', 'plan gemma3 --memory', /--memory takes SIZE/],
    ['a size that is none', 'plan gemma3 --memory 8potatoes', /--memory is "8potatoes"/],
    ['a word that the flag does not know', 'plan gemma3 --variant half', /--variant \(half\)/],
    ['lengths that are none', 'plan gemma3 --lengths 1,x', /--lengths is "x"/],
    ['a mix that is none', 'replay t --mix full+half', /--mix has "half"/],
    ['a policy that is none', 'replay t --policies full_kv=kept', /--policies has "full_kv=kept"/],
    ['a role that no buffer has', 'replay t --policies key=optional', /roles are full_kv/],
    ['a comparison that is none', 'replay t --compare size=3', /--compare has "size=3"/],
    ['requests without a trace', 'plan gemma3 --requests 3', /--requests are those of a trace/],
    ['a tolerance that is none', 'bench --tolerance much', /--tolerance is "much"/],
    ['an unknown shell', 'completion tcsh', /unknown shell "tcsh"/],
    ['prompts that are missing', 'generate', /--prompts/],
    ['a port that is none', 'serve --port 65536', /--port is "65536"/],
    ['a time that is none', 'serve --drain-timeout soon', /--drain-timeout is "soon"/],
    ['a key that cannot be sent', 'serve --api-key ключ', /an API key must have/],
    ['policies that are none', 'generate --prompts p --policies value', /--policies has "value"/],
    ['an encoding of no store', 'generate --prompts p --store-int8', /--store-int8 is about a store; say which one/],
    ['an action that is none', 'prefix show f.bwprefix', /unknown action "show"; there are export, inspect, import/],
    ['an export of nothing', 'prefix export f.bwprefix', /export takes --prompts/],
    ['an import to nowhere', 'prefix import f.bwprefix', /import takes --store/],
    ['a salt that is none', 'prefix import f.bwprefix --store d --salt 18446744073709551616', /--salt is "18446744073709551616"/],
  ])('%s', async (_, line, message) => {
    const outcome = await bufferwise(line);
    expect(outcome.told).toMatch(message);
    expect(isOneLine(outcome), outcome.told).toBe(true);
    expect(outcome.told).not.toContain(String.fromCharCode(27));
    expect(outcome.code).toBe(2);
  });
});

describe('exit code 1, and one line, for', () => {
  it.each([
    ['a model that nobody knows', 'plan gemma99', /neither a config.json nor a known model; known are llama-3.1-8b/],
    ['a trace that is not there', 'replay nowhere.jsonl', /cannot read nowhere.jsonl: ENOENT/],
    ['a trace to advise on that is not there', 'plan gemma3 --advise nowhere.jsonl', /cannot read nowhere.jsonl: ENOENT/],
    ['prompts that are not there', 'generate --model nowhere --prompts p', /cannot read nowhere/],
    ['a GGUF file that is not there', 'generate --model nowhere.gguf --prompts p', /cannot read nowhere.gguf: ENOENT/],
    ['keys that are not there', 'serve --api-keys nowhere', /cannot read nowhere: ENOENT/],
    ['a model to be served that is not there', 'serve nowhere.gguf', /cannot read nowhere.gguf: ENOENT/],
    ['a picture that cannot be written', 'plan gemma3 --svg /nowhere/at/all.svg', /cannot write .*all.svg: ENOENT/],
  ])('%s', async (_, line, message) => {
    const outcome = await bufferwise(line);
    expect(outcome.told).toMatch(message);
    expect(isOneLine(outcome), outcome.told).toBe(true);
    expect(outcome.code).toBe(1);
  });

  it('a prefix file that is not there, and one that is none', async () => {
    for (const action of ['inspect', 'import --store d'])
      expect((await bufferwise(`prefix ${action} nowhere.bwprefix`)).told).toBe(
        'bufferwise prefix: cannot read nowhere.bwprefix: ENOENT\n',
      );
    const path = join(folder, 'odd.bwprefix');
    await writeFile(path, 'BWPREFIX, it says');
    const outcome = await bufferwise(`prefix inspect ${path}`);
    expect(outcome).toMatchObject({ code: 1, printed: '' });
    expect(outcome.told).toMatch(/^bufferwise prefix: the prefix file does not begin as one/);
  });

  it('a trace of no known format, and one with a broken line', async () => {
    const path = join(folder, 'odd.jsonl');
    await writeFile(path, '{"a": 1}');
    expect((await bufferwise(`replay ${path}`)).told).toMatch(/the first line is of no known trace/);
    await writeFile(path, '{"input_length": 3, "hash_ids": [1]}\n{');
    expect(await bufferwise(`replay ${path}`)).toEqual({ code: 1, printed: '', told: 'bufferwise replay: line 2 is not JSON\n' });
  });

  it('a config that describes no model', async () => {
    const path = join(folder, 'odd.json');
    await writeFile(path, '{"model_type": "llama"}');
    const outcome = await bufferwise(`plan ${path}`);
    expect(outcome).toMatchObject({ code: 1, printed: '' });
    expect(outcome.told).toMatch(/num_hidden_layers/);
    await writeFile(path, '{');
    expect((await bufferwise(`plan ${path}`)).told).toMatch(/odd.json is not JSON/);
  });
});

describe('bufferwise plan', () => {
  it.each([60, 120])('reads the same at %i columns', async (columns) => {
    const { code, printed } = await bufferwise('plan gemma-3-4b --variant split', { columns });
    expect(code).toBe(0);
    expect(printed.split('\n').filter((line) => line.length > columns)).toEqual([]);
    await expect(printed).toMatchFileSnapshot(`snapshots/plan-${columns}.txt`);
  });

  it('takes a file, a folder, a name or a family', async () => {
    await writeFile(join(folder, 'config.json'), JSON.stringify(EXAMPLE_MODELS['gpt-oss-20b']));
    const ofFile = JSON.parse((await bufferwise(`plan ${join(folder, 'config.json')} --json`)).printed);
    for (const model of [folder, 'gpt-oss-20b', 'gpt-oss']) {
      expect({ ...JSON.parse((await bufferwise(`plan ${model} --json`)).printed), model: ofFile.model }).toEqual(ofFile);
    }
    expect(ofFile.explanation.totals.bytesPerToken).toEqual({ num: 49_152, den: 1 });
  });

  it('lets the storage type decide the bytes', async () => {
    const bytes = async (flags: string) =>
      JSON.parse((await bufferwise(`plan llama --json ${flags}`)).printed).preset.bytesPerToken.required;
    expect(await bytes('--kv-dtype f16')).toBe(131_072);
    expect(await bytes('--kv-dtype i8')).toBe(65_536);
  });

  it('draws a picture that is sound XML with a bar for each length and pool', async () => {
    const path = join(folder, 'plan.svg');
    await bufferwise(`plan gemma-3-4b --svg ${path}`);
    const svg = await readFile(path, 'utf8');
    await expect(svg).toMatchFileSnapshot('snapshots/plan.svg');
    expect(svg.match(/fill-opacity/g)).toHaveLength(3 + 2);
  });
});

describe('bufferwise plan --advise', () => {
  const line = async (more = '') => `plan gpt-oss-20b --memory 256MiB --advise ${await traceFile()}${more}`;

  it.each([60, 120])('reads the same at %i columns', async (columns) => {
    const { code, printed, told } = await bufferwise(await line(), { columns });
    expect([code, told]).toEqual([0, '']);
    // The policies are there to be copied, so their line is not broken.
    const lines = printed.split('\n').filter((each) => !each.startsWith('  --policies'));
    expect(lines.filter((each) => each.length > columns)).toEqual([]);
    await expect(printed).toMatchFileSnapshot(`snapshots/advise-${columns}.txt`);
  });

  it('says the same as data, and its policies are those of a replay', async () => {
    const { model, format, advice } = JSON.parse((await bufferwise(await line(' --json'))).printed);
    expect([model, format, advice.requests, advice.promptTokens]).toEqual(['gpt-oss-20b', 'lmcache', 3, 192]);
    for (const { hitRate, computedTokens, recomputedTokens } of advice.choices) {
      expect(computedTokens).toBe(192 - Math.round(192 * hitRate) + recomputedTokens);
    }
    const replayed = await bufferwise(
      `replay ${await traceFile()} --model gpt-oss-20b --policies ${advice.policies} --memory 256MiB --json`,
    );
    expect(JSON.parse(replayed.printed).results[0].requests).toBe(3);
  });

  it('has the rings of a split model in its choice', async () => {
    const classes = async (variant: string) => {
      const command = `plan granite-4.0-h-small --memory 1GiB --variant ${variant} --advise ${await traceFile()} --json`;
      return JSON.parse((await bufferwise(command)).printed).advice.classes.map(
        ({ lifecycle }: { lifecycle: string }) => lifecycle,
      );
    };
    expect(await classes('whole')).not.toContain('replay ring');
    expect(await classes('split')).toContain('replay ring');
  });

  it('shows how far it is where somebody watches', async () => {
    const { told } = await bufferwise(`plan gpt-oss-20b --memory 256MiB --advise ${await longTrace(100)}`, { isWatched: true });
    expect(told).toMatch(/choice \d+ of 9, \d+ of 100 requests/);
  });

  it('ends with code 130 when it is stopped', async () => {
    const abort = new AbortController();
    abort.abort(new Error('stopped'));
    const outcome = await bufferwise(`plan gpt-oss-20b --advise ${await longTrace(4000)}`, { signal: abort.signal });
    expect(outcome).toEqual({ code: 130, printed: '', told: '' });
  });

  it.each(['plan gpt-oss-20b --advise', 'replay'])('ends with code 0 when nobody reads what it says: %s', async (command) => {
    const abort = new AbortController();
    abort.abort(new Unheard());
    const outcome = await bufferwise(`${command} ${await longTrace(4000)}`, { signal: abort.signal });
    expect(outcome).toEqual({ code: 0, printed: '', told: '' });
  });
});

describe('bufferwise replay', () => {
  it('counts what each request found, group by group', async () => {
    const { printed } = await bufferwise(`replay ${await traceFile()} --running 1 --json`);
    const { format, results } = JSON.parse(printed);
    expect(format).toBe('lmcache');
    // 48 tokens of the second request, and all but the last of the third
    expect(results[0]).toMatchObject({
      requests: 3,
      skipped: 0,
      promptTokens: 192,
      hitTokens: 48 + 63,
      outputTokens: 3 + 1 + 2,
      groups: [{ groupId: 0, kind: 'full', policy: 'required', reusedPages: 3 + 4, evictedPages: 0 }],
    });
    expect(results[0].operationsPerSecond).toBeGreaterThan(0);
  });

  it.each([60, 120])('reads the same at %i columns', async (columns) => {
    const options = { columns };
    const trace = await traceFile();
    const { code, printed } = await runOn(
      COMMANDS,
      [
        'replay',
        trace,
        '--running',
        '1',
        '--mix',
        'full+window:32+state',
        '--memory',
        '16MiB',
        '--compare',
        'eviction=lru policies=window_kv=optional',
      ],
      options,
    );
    expect(code).toBe(0);
    await expect(printed.replaceAll(/(calls a second).*/g, '$1 …')).toMatchFileSnapshot(`snapshots/replay-${columns}.txt`);
  });

  it('says nothing but its result, and shows a bar where somebody watches', async () => {
    expect((await bufferwise(`replay ${await traceFile()}`)).told).toBe('');
  });

  it('draws a picture and a page', async () => {
    const [svg, html] = [join(folder, 'replay.svg'), join(folder, 'replay.html')];
    await bufferwise(`replay ${await traceFile()} --running 1 --svg ${svg} --html ${html}`);
    const picture = await readFile(svg, 'utf8');
    await expect(picture).toMatchFileSnapshot('snapshots/replay.svg');
    expect(await readFile(html, 'utf8')).toContain('<th>prompt tokens</th><td>192</td>');
  });

  it('ends with code 130 when it is stopped', async () => {
    const abort = new AbortController();
    abort.abort(new Error('stopped'));
    expect(await bufferwise(`replay ${await longTrace(4000)}`, { signal: abort.signal })).toEqual({
      code: 130,
      printed: '',
      told: '',
    });
  });
});

describe('bufferwise bench', () => {
  it('is the bench of the repository: it says which there are, and refuses a report that is none', async () => {
    const unknown = await bufferwise('bench no-such-bench');
    expect([unknown.code, unknown.printed]).toEqual([1, '']);
    expect(unknown.told).toMatch(/No benchmark matches no-such-bench. There are:\n {2}packages\/.*\.bench\.ts/);
    const path = join(folder, 'report.json');
    await writeFile(path, '{"schemaVersion": 99}');
    const refused = await bufferwise(`bench page-copy --compare ${path}`);
    expect([refused.code, refused.printed]).toEqual([1, '']);
    expect(refused.told).toMatch(/no report of version 1: its schemaVersion is 99/);
  });

  it('says so where there is no repository around it', () => {
    expect(() => benchScript(join(tmpdir(), 'bufferwise.js'))).toThrow(/not in it: clone it/);
  });

  it('ends with code 130 when it is stopped', async () => {
    const abort = new AbortController();
    abort.abort(new Error('stopped'));
    expect(await bufferwise('bench page-copy', { signal: abort.signal })).toMatchObject({ code: 130 });
  });
});

describe('bufferwise completion', () => {
  const complete = async (...words: string[]) => {
    const { printed } = await bufferwise('completion bash');
    const script = `${printed}\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _bufferwise; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { stdout, status, stderr } = spawnSync('bash', ['-c', script, 'bash', 'bufferwise', ...words], { encoding: 'utf8' });
    expect([status, stderr]).toEqual([0, '']);
    return stdout.split('\n').filter((word) => word !== '');
  };

  it('offers commands, options and their words to bash', async () => {
    expect(await complete('')).toEqual([
      'plan',
      'replay',
      'generate',
      'serve',
      'prefix',
      'demo',
      'bench',
      'doctor',
      'completion',
      '--help',
    ]);
    expect(await complete('p')).toEqual(['plan', 'prefix']);
    expect(await complete('prefix', 'i')).toEqual(['inspect', 'import']);
    expect(await complete('plan', '--va')).toEqual(['--variant']);
    expect(await complete('plan', '--variant', '')).toEqual(['whole', 'split']);
    expect(await complete('plan', 'gemma')).toEqual(['gemma-2-9b', 'gemma-3-4b']);
    expect(await complete('completion', '')).toEqual(expect.arrayContaining(['bash', 'zsh', 'fish']));
    // Nothing: bash goes on with files.
    expect(await complete('plan', '--svg', '')).toEqual([]);
  });

  it.each(['bash', 'zsh', 'fish'])('of %s names every option of every command', async (shell) => {
    const { code, printed } = await bufferwise(`completion ${shell}`);
    expect(code).toBe(0);
    for (const { name, args } of COMMANDS) {
      expect(printed).toContain(name);
      for (const [option, { type }] of Object.entries(args)) {
        if (type !== 'positional') expect(printed, option).toContain(shell === 'fish' ? `-l ${option}` : `--${option}`);
      }
    }
    await expect(printed).toMatchFileSnapshot(`snapshots/completion.${shell}`);
    expect(JSON.parse((await bufferwise(`completion ${shell} --json`)).printed)).toEqual({ shell, script: printed });
  });
});

describe('every command', () => {
  it('has --json', () => {
    for (const { name, args } of COMMANDS) expect(args.json?.type, name).toBe('boolean');
  });
});
