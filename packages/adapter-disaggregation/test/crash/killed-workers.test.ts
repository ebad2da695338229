import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'tsup';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { TcpTransport } from '../../src/tcp/tcp-transport.ts';
import type { ArrivedRequest } from '../../src/worker/incoming-transfer.ts';
import { TransferReceiver } from '../../src/worker/transfer-receiver.ts';
import { KEY, MODEL, moveRequest, newSender, newWorker, TIMES, TOKENS } from './moved-request.ts';

vi.setConfig({ testTimeout: 600_000 });
const PATIENCE = { timeout: 60_000, interval: 20 };

const folder = mkdtempSync(join(tmpdir(), 'killed-workers-'));
const transport = new TcpTransport({ key: KEY });
const children = new Set<ChildProcess>();
afterAll(async () => {
  for (const child of children) child.kill('SIGKILL');
  await transport.close();
  rmSync(folder, { recursive: true, force: true });
});

beforeAll(async () => {
  await build({
    config: false,
    silent: true,
    entry: [join(import.meta.dirname, 'move-worker.ts')],
    outDir: folder,
    format: 'esm',
    platform: 'node',
    target: 'es2022',
    outExtension: () => ({ js: '.mjs' }),
    noExternal: [/.*/],
    tsconfig: join(import.meta.dirname, '../../tsconfig.json'),
    esbuildOptions(options) {
      options.conditions = ['@bufferwise/source'];
    },
  });
});

/** A worker in another process, and what it says. */
class OtherProcess {
  readonly #child: ChildProcess;
  #said = '';

  constructor(...args: readonly string[]) {
    this.#child = spawn(process.execPath, [join(folder, 'move-worker.mjs'), ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
    children.add(this.#child);
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#said += text;
    });
  }

  get said(): readonly string[] {
    return this.#said.split('\n').slice(0, -1);
  }

  /** What it says behind one of these words, once it has. */
  async hear(...words: readonly string[]): Promise<{ word: string; what: string }> {
    const line = await vi.waitUntil(() => this.said.find((each) => words.some((word) => each.startsWith(`${word}: `))), PATIENCE);
    const [word] = (line as string).split(': ', 1);
    return { word, what: (line as string).slice(word.length + 2) };
  }

  /** SIGKILL: it says nothing to anybody any more. */
  async kill(): Promise<void> {
    const ended = new Promise((resolve) => this.#child.once('exit', resolve));
    this.#child.kill('SIGKILL');
    await ended;
    children.delete(this.#child);
  }
}

test('a prefill worker that is killed at any step leaves nothing held, and another one moves the request', async () => {
  const worker = newWorker();
  let arrived: ArrivedRequest[] = [];
  const receiver = new TransferReceiver({
    manager: worker.manager,
    device: worker.device,
    modelFingerprint: MODEL,
    times: TIMES,
    admit: () => ({ tokens: TOKENS, arrived: (request) => arrived.push(request) }),
  });
  const listener = await transport.listen('127.0.0.1:0');
  const steps: string[] = [];
  let generation = 0;
  for (let stopAt = 1; ; stopAt++) {
    const served = listener.accept().then((connection) => receiver.serve(connection));
    const killed = new OtherProcess('sender', listener.address, String(generation++), String(stopAt));
    const { word, what } = await killed.hear('stopped', 'ended');
    await killed.kill();
    await served;
    expect([receiver.numOpen, receiver.numHolding], what).toEqual([0, 0]);
    for (const { cache } of arrived) cache.close();
    expect(worker.leaks(), what).toEqual([]);
    arrived = [];
    if (word === 'ended') break;
    steps.push(what);

    worker.manager.clearReusableBlocks();
    const again = listener.accept().then((connection) => receiver.serve(connection));
    const next = new OtherProcess('sender', listener.address, String(generation++), '0');
    expect(await next.hear('ended')).toMatchObject({ what: 'complete' });
    await next.kill();
    await again;
    expect(arrived.map(({ cache }) => worker.faults(cache, TOKENS))).toEqual([[]]);
    for (const { cache } of arrived) cache.close();
    arrived = [];
    worker.manager.clearReusableBlocks();
  }
  expect(steps.slice(0, 2)).toEqual(['sends offer', 'receives accept']);
  expect(steps.slice(-2)).toEqual(['sends done', 'receives complete']);
  expect(new Set(steps.slice(2, -2))).toEqual(new Set([0, 1, 2, 3].map((group) => `sends pages of group ${group}`)));
  await listener.close();
});

test('a decode worker that is killed at any step leaves nothing held, and another one takes the request', async () => {
  const worker = newWorker();
  const sender = newSender(worker);
  const steps: string[] = [];
  let generation = 0;
  const moveTo = async (other: OtherProcess) => {
    const { what: address } = await other.hear('listens');
    const connection = await transport.connect(address);
    return { connection, report: moveRequest(worker, sender, connection, generation++) };
  };
  for (let stopAt = 1; ; stopAt++) {
    const killed = new OtherProcess('receiver', String(stopAt));
    const { connection, report } = await moveTo(killed);
    const stopped = killed.hear('stopped').then(({ what }) => what);
    const ended = await Promise.race([stopped, report]);
    await killed.kill();
    const { outcome } = await report;
    await connection.close();
    expect(sender.numOpen).toBe(0);
    expect(worker.leaks()).toEqual([]);
    if (typeof ended !== 'string') {
      expect(outcome).toEqual({ kind: 'complete' });
      stopped.catch(() => {});
      break;
    }
    expect(outcome.kind, ended).toBe('lost');
    steps.push(ended);

    const next = new OtherProcess('receiver', '0');
    const second = await moveTo(next);
    expect((await second.report).outcome).toEqual({ kind: 'complete' });
    expect(await next.hear('arrived')).toMatchObject({ what: '0 faults' });
    await second.connection.close();
    await next.kill();
  }
  expect(steps.slice(0, 2)).toEqual(['receives offer', 'sends accept']);
  expect(steps.slice(-2)).toEqual(['receives done', 'sends complete']);
  expect(steps.slice(2, -2).length).toBeGreaterThan(3);
  expect(new Set(steps.slice(2, -2))).toEqual(new Set(['receives pages']));
});
