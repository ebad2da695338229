import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { dependencies } from './dependencies.mjs';
import { CommandError } from './process.mjs';
import { servers } from './servers.mjs';
import { softwareGpu } from './software-gpu.mjs';
import { importSource, sourceModule } from './source-module.mjs';
import { faint, progress, say, strong } from './terminal.mjs';
import { root } from './workspace.mjs';

const MODEL = join(root, 'models/whaler-1m');
const PROMPT =
  'The harpooneer looked out over the grey sea, where the whale had gone down an hour ago, and spoke to the mate of the boat, '.repeat(
    4,
  );
const KNOWN_MS = 60_000;
const HEARD_MS = 10_000;
const PREFIX = 'bufferwise_';

/** `disaggregation`: one process that reads prompts, one that answers, NATS between them, and a client who asks twice. */
export async function disaggregation() {
  const { step, announce } = progress();
  await step('dependencies', dependencies);
  const missing = await step('nats-server', () => servers(['nats']));
  if (missing.length > 0)
    throw new CommandError('nats-server is not on this machine, and workers find each other over it: install it and try again');
  const environment = await step('software GPU', softwareGpu);
  const command = await sourceModule('apps/cli', 'bufferwise', "import './src/main.ts';");
  const { NatsProcess } = await importSource('internal/services', 'src/index.ts');
  const nats = await NatsProcess.start();
  const env = {
    ...process.env,
    ...environment,
    BUFFERWISE_NATS: nats.url,
    // Both processes have it; it never travels.
    BUFFERWISE_CLUSTER_KEY: randomBytes(32).toString('hex'),
  };
  const started = [];
  const serve = (role, ...args) => startServe(command, ['--role', role, ...args], env, started);
  try {
    const [reader, answerer] = await step('one process that reads prompts, one that answers', async () => ({
      value: await Promise.all([serve('prefill'), serve('decode', '--prefill-from', '64')]),
    }));
    await untilKnown(answerer);
    announce('A prompt that nobody has read yet');
    await ask(`${PROMPT}"Captain,`, { reader, answerer });
    announce('Another one that begins as it does');
    await ask(`${PROMPT}"Where is it`, { reader, answerer });
    return 0;
  } finally {
    for (const child of started) child.kill('SIGTERM');
    await Promise.all(
      started.map((child) => (child.exitCode === null && child.signalCode === null ? once(child, 'exit') : undefined)),
    );
    await nats.stop();
  }
}

/** @returns {Promise<string>} where it listens */
async function startServe(command, args, env, started) {
  const child = spawn(process.execPath, [command, 'serve', MODEL, '--port', '0', '--json', ...args], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  started.push(child);
  let told = '';
  child.stderr.on('data', (text) => {
    told += text;
  });
  const [said] = await Promise.race([
    once(child.stdout, 'data'),
    once(child, 'exit').then(([code]) => {
      throw new CommandError(`bufferwise serve ${args.join(' ')} ended with ${code}:\n${told}`);
    }),
  ]);
  return JSON.parse(said).url;
}

/** Waits until the one that answers has heard of the one that reads. */
async function untilKnown(url) {
  const untilMs = performance.now() + KNOWN_MS;
  while ((await figures(url)).get('cluster_workers{role="prefill"}') !== 1) {
    if (performance.now() > untilMs) throw new CommandError('the two processes did not find each other');
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Asks, and says what was answered, who read what of the prompt, and what moved. */
async function ask(prompt, { reader, answerer }) {
  const before = { reader: await figures(reader), answerer: await figures(answerer) };
  const response = await fetch(`${answerer}/v1/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ prompt, max_tokens: 24, temperature: 0 }),
  });
  const { choices, usage, error } = await response.json();
  if (!response.ok) throw new CommandError(`the answer was ${response.status}: ${error?.message}`);
  const after = { reader: await figuresAfter(before.reader, reader), answerer: await figures(answerer) };
  const more = (side, name) => (after[side].get(name) ?? 0) - (before[side].get(name) ?? 0);
  say(`… ${prompt.slice(-60)}${strong(choices[0].text)}\n`);
  const [computed, found] = ['model', 'cache'].map((from) => more('reader', `prefill_tokens_total{from="${from}"}`));
  say(
    `${usage.prompt_tokens} tokens of a prompt: ${computed} computed and ${found} found in its cache by the process that reads, the rest here.`,
  );
  const groups = [...after.answerer.keys()].flatMap(
    (name) => /^moved_bytes_total\{direction="in",group="(.*)"\}$/.exec(name)?.[1] ?? [],
  );
  const bytesOf = (kind, group) => more('answerer', `${kind}_bytes_total{direction="in",group="${group}"}`);
  const rows = groups.map((group) => ({ group, lacked: bytesOf('lacked', group), moved: bytesOf('moved', group) }));
  const sum = (kind) => rows.reduce((total, row) => total + row[kind], 0);
  table([...rows, { group: 'all', lacked: sum('lacked'), moved: sum('moved') }]);
}

/** Bytes of pages, by group. */
function table(rows) {
  const width = Math.max(...rows.map(({ group }) => group.length));
  const line = (group, ...cells) => `  ${group.padEnd(width)}${cells.map((cell) => cell.padStart(14)).join('')}`;
  say(faint(line('pages of', 'lacked here', 'moved here')));
  const kib = (bytes) => `${(bytes / 1024).toFixed(1)} KiB`;
  for (const { group, lacked, moved } of rows) say(line(group, kib(lacked), kib(moved)));
}

/** The figures of the process that reads once it has heard that the prompt arrived, which may be after the answer. */
async function figuresAfter(before, url) {
  const name = 'prefill_jobs_total{outcome="complete"}';
  const untilMs = performance.now() + HEARD_MS;
  for (;;) {
    const now = await figures(url);
    if (now.get(name) !== before.get(name) || performance.now() > untilMs) return now;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** What a server counts, by name and labels. */
async function figures(url) {
  const text = await (await fetch(`${url}/metrics`)).text();
  const lines = text.split('\n').filter((line) => line.startsWith(PREFIX));
  return new Map(
    lines.map((line) => {
      const at = line.lastIndexOf(' ');
      return [line.slice(PREFIX.length, at), Number(line.slice(at + 1))];
    }),
  );
}
