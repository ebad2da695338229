import type { ChildProcess } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FaultProxy, freePorts, hasServer, NatsProcess } from '@bufferwise-internal/services';
import { gpuEnvironment } from '@bufferwise-internal/webgpu-node';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { type ServedProcess, startServe } from '../support/served-process.ts';
import { sourceCommand } from '../support/source-command.ts';
import { GRANITE } from '../support/test-server.ts';

// A software device on a busy machine takes its time; nothing here is about speed.
vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 });

/** Requests of the load test; a longer one is `BUFFERWISE_LOAD_REQUESTS=2000`. */
const LOAD_REQUESTS = Number(process.env.BUFFERWISE_LOAD_REQUESTS ?? 32);
const LOAD_CLIENTS = 4;
const SECRET = 'a secret of this test alone';
const USER = { user: 'worker', pass: 'p@ss/word' };
const WAIT = { timeout: 120_000, interval: 20 };

let command: string;
let environment: NodeJS.ProcessEnv;
/** Answers everything by itself. */
let alone: ServedProcess;
const aloneStarted: ChildProcess[] = [];

/** What a test has, and has to itself: others on the same NATS would work with it. */
let nats: NatsProcess;
const started: ChildProcess[] = [];
const ends: (() => unknown)[] = [];

const serve = (args: readonly string[]) => {
  const url = `nats://${USER.user}:${encodeURIComponent(USER.pass)}@127.0.0.1:${nats.port}`;
  const env = { ...environment, BUFFERWISE_NATS: url, BUFFERWISE_CLUSTER_KEY: SECRET };
  return startServe(command, [GRANITE, ...args], { env, started });
};
const prefill = (...args: string[]) => serve(['--role', 'prefill', ...args]);
const decode = (...args: string[]) => serve(['--role', 'decode', '--prefill-from', '16', '--prefill-timeout', '5m', ...args]);

/** A prompt of a few blocks that no other has the beginning of: every byte is a token. */
const promptOf = (name: string) => `${name}: ${'a text that goes on for a while, as texts do, '.repeat(6)}and ends with ${name}`;

interface Asked {
  readonly key?: string;
  readonly [field: string]: unknown;
}

const post = (server: Pick<ServedProcess, 'url'>, prompt: string, { key, ...fields }: Asked = {}) =>
  fetch(`${server.url}/v1/completions`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      connection: 'close',
      ...(key !== undefined && { authorization: `Bearer ${key}` }),
    },
    body: JSON.stringify({ prompt, max_tokens: 8, temperature: 0, ignore_eos: true, logprobs: 1, ...fields }),
  });

/** All answers to a prompt, with their probabilities: two answers that are equal here were computed from the same numbers. */
async function ask(server: ServedProcess, prompt: string, asked: Asked = {}): Promise<unknown[]> {
  const response = await post(server, prompt, asked);
  const body = await response.json();
  expect([response.status, body.error]).toEqual([200, undefined]);
  return body.choices;
}

async function numTokens({ url }: ServedProcess, prompt: string): Promise<number> {
  const body = JSON.stringify({ prompt });
  const response = await fetch(`${url}/tokenize`, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  return (await response.json()).count;
}

/** The figures of a server, by name and labels. */
async function figures({ url }: ServedProcess, key?: string): Promise<Map<string, number>> {
  const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const text = await (await fetch(`${url}/metrics`, { headers })).text();
  const lines = text.split('\n').filter((line) => line.startsWith('bufferwise_'));
  return new Map(
    lines.map((line) => {
      const at = line.lastIndexOf(' ');
      return [line.slice('bufferwise_'.length, at), Number(line.slice(at + 1))];
    }),
  );
}

const movesOf = async (server: ServedProcess, outcome: string) =>
  (await figures(server)).get(`prompt_moves_total{outcome="${outcome}"}`) ?? 0;

/** What a server says of the others. */
async function clusterOf({ url }: ServedProcess) {
  return (await (await fetch(`${url}/inspect`)).json()).cluster;
}

/** Waits until a server knows as many of each role that take jobs. */
async function knows(server: ServedProcess, roles: Readonly<Record<string, number>>): Promise<void> {
  await vi.waitFor(async () => {
    const { workers } = await clusterOf(server);
    const open = workers.filter(({ draining }: { draining: boolean }) => !draining);
    const counts = Object.keys(roles).map((role) => [role, open.filter((each: { role: string }) => each.role === role).length]);
    expect(Object.fromEntries(counts)).toEqual(roles);
  }, WAIT);
}

async function end({ child, exit }: ServedProcess, signal: NodeJS.Signals = 'SIGTERM'): Promise<number | string> {
  child.kill(signal);
  return exit;
}

describe.runIf(hasServer('nats'))('bufferwise serve --role', () => {
  beforeAll(async () => {
    command = await sourceCommand();
    environment = { ...process.env, ...(await gpuEnvironment()) };
    alone = await startServe(command, [GRANITE], { env: environment, started: aloneStarted });
  });
  afterAll(() => {
    for (const child of aloneStarted) child.kill('SIGKILL');
  });
  beforeEach(async () => {
    nats = await NatsProcess.start({ settings: ['--user', USER.user, '--pass', USER.pass] });
  });
  afterEach(async () => {
    for (const child of started.splice(0)) child.kill('SIGKILL');
    for (const end of ends.splice(0)) await end();
    await nats.stop();
  });

  it('answers as one process does, moves what is lacked and nothing else, and keeps keys apart', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'bufferwise-roles-'));
    ends.push(() => rm(folder, { recursive: true, force: true }));
    const keys = join(folder, 'keys.txt');
    await writeFile(keys, 'first-key\nsecond-key\n');
    const [reader, answerer] = await Promise.all([prefill(), decode('--api-keys', keys)]);
    await vi.waitFor(
      async () => expect((await figures(answerer, 'first-key')).get('cluster_workers{role="prefill"}')).toBe(1),
      WAIT,
    );
    const prompt = promptOf('a first one');
    const of = (key: string) => ({ key });
    expect(await ask(answerer, prompt, of('first-key'))).toEqual(await ask(alone, prompt));
    const afterFirst = await figures(answerer, 'first-key');
    const groups = [...afterFirst.keys()].filter((name) => name.startsWith('moved_bytes_total{direction="in"'));
    expect(groups).toHaveLength(2);
    for (const group of groups) {
      expect(afterFirst.get(group)).toBeGreaterThan(0);
      expect(afterFirst.get(group)).toBe(afterFirst.get(group.replace('moved', 'lacked')));
      expect((await figures(reader)).get(group.replace('"in"', '"out"'))).toBe(afterFirst.get(group));
    }
    // What is here is not asked for again; several answers come of one reading, drawn or not.
    expect(await ask(answerer, prompt, of('first-key'))).toEqual(await ask(alone, prompt));
    const several = { n: 3, temperature: 1, seed: 11, max_tokens: 5 };
    const other = promptOf('another one');
    expect(await ask(answerer, other, { ...several, ...of('first-key') })).toEqual(await ask(alone, other, several));
    expect(await ask(answerer, 'short', of('first-key'))).toEqual(await ask(alone, 'short'));
    expect((await figures(answerer, 'first-key')).get('prompt_moves_total{outcome="moved"}')).toBe(2);
    // The other key finds nothing of it, here or there.
    const readBefore = (await figures(reader)).get('prefill_tokens_total{from="model"}') as number;
    expect(await ask(answerer, prompt, of('second-key'))).toEqual(await ask(alone, prompt));
    expect((await figures(reader)).get('prefill_tokens_total{from="model"}')).toBe(
      readBefore + (await numTokens(alone, prompt)) - 1,
    );
    expect((await figures(reader)).get('prefill_tokens_total{from="cache"}')).toBe(0);
    expect((await post(reader, prompt)).status).toBe(404);
    expect(await Promise.all([end(reader), end(answerer)])).toEqual([0, 0]);
    expect(reader.told() + answerer.told()).not.toMatch(/p@ss|p%40ss|a secret/);
  });

  it('does both for each other where each has both roles', async () => {
    const both = ['--role', 'both', '--prefill-from', '16', '--prefill-timeout', '5m'];
    const [one, two] = await Promise.all([serve(both), serve(both)]);
    await Promise.all([knows(one, { both: 2 }), knows(two, { both: 2 })]);
    const prompts = [promptOf('x'), promptOf('y'), promptOf('z'), promptOf('w')];
    const answers = await Promise.all(prompts.map((prompt, i) => ask(i % 2 === 0 ? one : two, prompt)));
    for (const [i, prompt] of prompts.entries()) expect(answers[i]).toEqual(await ask(alone, prompt));
    for (const each of [one, two]) {
      expect(await movesOf(each, 'moved')).toBe(2);
      expect((await figures(each)).get('prefill_jobs_total{outcome="complete"}')).toBe(2);
    }
    expect(await Promise.all([end(one), end(two)])).toEqual([0, 0]);
  });

  describe('when something goes wrong in the middle of a move', () => {
    let answerer: ServedProcess;
    let network: FaultProxy;
    let reader: ServedProcess;
    beforeEach(async () => {
      const [port] = await freePorts(1);
      network = await FaultProxy.start(port);
      ends.push(() => network.stop());
      const starting = decode('--pages', `127.0.0.1:${port}`, '--pages-as', `127.0.0.1:${network.port}`);
      [answerer, reader] = await Promise.all([starting, prefill('--drain-timeout', '5m')]);
    });

    /** A prompt whose move has begun, and goes slowly. */
    async function moving(name: string): Promise<{ prompt: string; answer: Promise<unknown[]> }> {
      await knows(answerer, { prefill: 1 });
      const before = await movesOf(answerer, 'moved');
      expect(await ask(answerer, promptOf(`before ${name}`))).toEqual(await ask(alone, promptOf(`before ${name}`)));
      expect(await movesOf(answerer, 'moved')).toBe(before + 1);
      // What the answering side says comes late: it holds room, and the other side does not know yet.
      network.fault = { delayMs: 3_000 };
      const prompt = promptOf(name);
      const answer = ask(answerer, prompt);
      answer.catch(() => {});
      await vi.waitFor(async () => expect((await clusterOf(answerer)).moves.holding).toBe(1), WAIT);
      return { prompt, answer };
    }

    const settled = async () => {
      network.fault = {};
      await vi.waitFor(async () => {
        const { moves, jobs } = await clusterOf(answerer);
        expect({ moves, jobs }).toEqual({ moves: { incoming: 0, holding: 0, outgoing: 0 }, jobs: 0 });
      }, WAIT);
    };

    it('answers the same when the reading process is killed', async () => {
      const { prompt, answer } = await moving('killed');
      await end(reader, 'SIGKILL');
      expect(await answer).toEqual(await ask(alone, prompt));
      expect((await movesOf(answerer, 'no-worker')) + (await movesOf(answerer, 'failed'))).toBe(1);
      await settled();
      expect((await clusterOf(answerer)).workers.map(({ role }: { role: string }) => role)).toEqual(['decode']);
    });

    it('answers the same when NATS is restarted, and meanwhile', async () => {
      const { prompt, answer } = await moving('restarted');
      await nats.kill();
      // What is on its way needs no NATS.
      expect(await answer).toEqual(await ask(alone, prompt));
      await vi.waitFor(async () => expect((await figures(answerer)).get('cluster_connected')).toBe(0), WAIT);
      const before = await movesOf(answerer, 'control-lost');
      expect(await ask(answerer, promptOf('meanwhile'))).toEqual(await ask(alone, promptOf('meanwhile')));
      expect(await movesOf(answerer, 'control-lost')).toBe(before + 1);
      await nats.restart();
      await vi.waitFor(async () => expect((await figures(answerer)).get('cluster_connected')).toBe(1), WAIT);
      await settled();
      const moved = await movesOf(answerer, 'moved');
      await knows(answerer, { prefill: 1 });
      expect(await ask(answerer, promptOf('afterwards'))).toEqual(await ask(alone, promptOf('afterwards')));
      expect(await movesOf(answerer, 'moved')).toBe(moved + 1);
    });

    it('lets a reading process that is told to stop end what it has begun', async () => {
      const { prompt, answer } = await moving('drained');
      const moved = await movesOf(answerer, 'moved');
      reader.child.kill('SIGTERM');
      await vi.waitFor(
        async () =>
          expect((await clusterOf(answerer)).workers.map((each: { draining: boolean }) => each.draining)).toContain(true),
        WAIT,
      );
      expect(await answer).toEqual(await ask(alone, prompt));
      expect(await movesOf(answerer, 'moved')).toBe(moved + 1);
      expect(await reader.exit).toBe(0);
      await settled();
      await knows(answerer, { prefill: 0 });
    });
  });

  it('loses nothing under load while every process is restarted in turn', async () => {
    const readers = await Promise.all([prefill(), prefill()]);
    const answerers = await Promise.all([decode(), decode()]);
    for (const each of answerers) await knows(each, { prefill: 2, decode: 2 });
    const prompts = Array.from({ length: 8 }, (_, i) => promptOf(`load ${i}`));
    const expected: unknown[][] = [];
    for (const prompt of prompts) expected.push(await ask(alone, prompt));
    const counts = { answered: 0, sentElsewhere: 0, restarts: 0, moved: 0, readHere: 0 };
    let next = 0;

    /** As a balancer does it: who is stopping sends requests away, and they go to the other one. */
    async function send(i: number): Promise<void> {
      for (let at = i; ; at++) {
        const server = answerers[at % answerers.length];
        // With a salt of its own each request has something to be read.
        const response = await post(server, prompts[i % prompts.length], { cache_salt: `${i}` }).catch((error) => {
          // Only who was never taken may go elsewhere.
          expect(error.cause?.code).toBe('ECONNREFUSED');
          return null;
        });
        if (response?.status === 200) {
          expect((await response.json()).choices).toEqual(expected[i % prompts.length]);
          counts.answered++;
          return;
        }
        if (response !== null) expect(response.status).toBe(503);
        counts.sentElsewhere++;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
    const client = async () => {
      while (next < LOAD_REQUESTS) await send(next++);
    };
    const count = async (server: ServedProcess) => {
      const now = await figures(server);
      for (const [name, value] of now)
        if (name.startsWith('prompt_moves_total')) counts[name.includes('"moved"') ? 'moved' : 'readHere'] += value;
    };
    const restart = async () => {
      for (let i = 0; i < 2; i++) {
        await vi.waitUntil(() => next >= ((i + 1) * LOAD_REQUESTS) / 3, { timeout: 600_000, interval: 5 });
        await end(readers[i], i === 0 ? 'SIGTERM' : 'SIGKILL');
        readers[i] = await prefill();
        await count(answerers[i]);
        expect(await end(answerers[i])).toBe(0);
        answerers[i] = await decode();
        counts.restarts += 2;
      }
    };
    const began = performance.now();
    await Promise.all([restart(), ...Array.from({ length: LOAD_CLIENTS }, client)]);
    const seconds = (performance.now() - began) / 1000;
    for (const each of answerers) await count(each);
    expect(counts.answered).toBe(LOAD_REQUESTS);
    expect(counts.restarts).toBe(4);
    expect(counts.moved).toBeGreaterThan(0);
    for (const each of answerers)
      await vi.waitFor(async () => expect((await clusterOf(each)).moves).toEqual({ incoming: 0, holding: 0, outgoing: 0 }), WAIT);
    process.stdout.write(`load over 2 + 2 processes: ${JSON.stringify({ ...counts, seconds: Math.round(seconds) })}\n`);
    await Promise.all([...readers, ...answerers].map((each) => end(each)));
  });
});
