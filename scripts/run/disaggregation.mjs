import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { dependencies } from './dependencies.mjs';
import { CommandError } from './process.mjs';
import { servers } from './servers.mjs';
import { softwareGpu } from './software-gpu.mjs';
import { importSource, sourceModule } from './source-module.mjs';
import { progress, say, strong } from './terminal.mjs';
import { root } from './workspace.mjs';

const MODEL = join(root, 'models/whaler-1m');
const PROMPT =
  'The harpooneer looked out over the grey sea, where the whale had gone down an hour ago, and spoke to the mate of the boat, '.repeat(
    4,
  );
const KNOWN_MS = 60_000;

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
    const [, answerer] = await step('one process that reads prompts, one that answers', async () => ({
      value: await Promise.all([serve('prefill'), serve('decode', '--prefill-from', '64')]),
    }));
    await untilKnown(answerer);
    announce('A client asks');
    const before = await movedBytes(answerer);
    await ask(answerer, `${PROMPT}"Captain,`, before);
    await ask(answerer, `${PROMPT}"Where is it`, await movedBytes(answerer));
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
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  started.push(child);
  const [said] = await Promise.race([
    once(child.stdout, 'data'),
    once(child, 'exit').then(([code]) => {
      throw new CommandError(`bufferwise serve ${args.join(' ')} ended with ${code}`);
    }),
  ]);
  return JSON.parse(said).url;
}

/** Waits until the one that answers has heard of the one that reads. */
async function untilKnown(url) {
  const untilMs = performance.now() + KNOWN_MS;
  while ((await figures(url)).get('bufferwise_cluster_workers{role="prefill"}') !== 1) {
    if (performance.now() > untilMs) throw new CommandError('the two processes did not find each other');
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function ask(url, prompt, before) {
  const response = await fetch(`${url}/v1/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ prompt, max_tokens: 24, temperature: 0 }),
  });
  const { choices, usage } = await response.json();
  say(`\n… ${prompt.slice(-60)}${strong(choices[0].text)}`);
  say(`${usage.prompt_tokens} tokens of a prompt, of which pages came from the other process:`);
  for (const [group, bytes] of await movedBytes(url))
    say(`  ${group.padEnd(24)} ${((bytes - (before.get(group) ?? 0)) / 1024).toFixed(1).padStart(8)} KiB`);
}

/** Bytes that came, by group. */
async function movedBytes(url) {
  const found = [...(await figures(url))].flatMap(([name, bytes]) => {
    const [, group] = /^bufferwise_moved_bytes_total\{direction="in",group="(.*)"\}$/.exec(name) ?? [];
    return group === undefined ? [] : [[group, bytes]];
  });
  return new Map(found);
}

/** What a server counts, by name and labels. */
async function figures(url) {
  const text = await (await fetch(`${url}/metrics`)).text();
  const lines = text.split('\n').filter((line) => line.startsWith('bufferwise_'));
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]));
}
