import { hasServer } from '@bufferwise-internal/services';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { answersAlone, end, figures, holdsNothing, knows, post, promptOf } from '../support/served-client.ts';
import { ServedCluster } from '../support/served-cluster.ts';
import type { ServedProcess } from '../support/served-process.ts';
import { LLAMA } from '../support/test-server.ts';

// A software device on a busy machine takes its time; nothing here is about speed.
vi.setConfig({ testTimeout: 3_600_000, hookTimeout: 600_000 });

/** A longer one: `BUFFERWISE_LOAD_REQUESTS=2000 BUFFERWISE_LOAD_RESTARTS=12`. */
const REQUESTS = Number(process.env.BUFFERWISE_LOAD_REQUESTS ?? 16);
/** Times that a reading and an answering process are restarted, spread over the requests. */
const RESTARTS = Number(process.env.BUFFERWISE_LOAD_RESTARTS ?? 1);
const CLIENTS = 4;
const PROMPTS = 4;

describe.runIf(hasServer('nats'))('two processes that read and two that answer, under load,', () => {
  let cluster: ServedCluster;
  beforeAll(async () => {
    cluster = await ServedCluster.start({ model: LLAMA });
  });
  afterAll(() => cluster?.stop());

  it('lose nothing while they are restarted in turn', async () => {
    const prompts = Array.from({ length: PROMPTS }, (_, i) => promptOf(`load ${i}`));
    // However slow the machine is: what has begun may end.
    const decode = () => cluster.decode('--drain-timeout', '10m');
    const prefill = () => cluster.prefill('--drain-timeout', '10m');
    const answerers = await Promise.all([decode(), decode()]);
    const expected = await answersAlone(answerers[0], prompts);
    const readers = await Promise.all([prefill(), prefill()]);
    for (const each of answerers) await knows(each, { prefill: 2, decode: 2 });
    // What was read here to know the answers is none of it.
    const counts = {
      answered: 0,
      sentElsewhere: 0,
      restarts: 0,
      moved: 0,
      readHere: 0,
      retries: 0,
      movedBytes: 0,
      lackedBytes: 0,
    };
    const tookMs: number[] = [];
    const stopping = new Set<ServedProcess>();
    let slowestStopMs = 0;
    let next = 0;

    /** As a balancer does it: who is stopping sends requests away, and they go to the other one. */
    async function send(i: number): Promise<void> {
      const prompt = prompts[i % prompts.length];
      const began = performance.now();
      for (let at = i; ; at++) {
        // With a salt of its own each request has something to be read.
        const server = answerers[at % answerers.length];
        const response = await post(server, prompt, { cache_salt: `${i}` }).catch((error) => {
          // Who comes as the door is closed was never taken: what was, ends before, or the process would not end with 0.
          expect([...stopping], `${error.cause?.code}`).toContain(server);
          return null;
        });
        if (response?.status === 200) {
          expect((await response.json()).choices).toEqual(expected.get(prompt));
          counts.answered++;
          tookMs.push(performance.now() - began);
          return;
        }
        if (response !== null) expect(response.status).toBe(503);
        // The other one is not stopping: one is at a time.
        counts.sentElsewhere++;
      }
    }
    const client = async () => {
      while (next < REQUESTS) await send(next++);
    };
    const count = async (server: ServedProcess) => {
      for (const [name, value] of await figures(server)) {
        if (name.startsWith('prompt_moves_total')) counts[name.includes('"moved"') ? 'moved' : 'readHere'] += value;
        else if (name === 'prompt_move_retries_total') counts.retries += value;
        else if (name.startsWith('moved_bytes_total{direction="in"')) counts.movedBytes += value;
        else if (name.startsWith('lacked_bytes_total{direction="in"')) counts.lackedBytes += value;
      }
    };
    const restart = async () => {
      for (let n = 0; n < RESTARTS; n++) {
        const i = n % 2;
        await vi.waitUntil(() => next >= ((n + 1) * REQUESTS) / (RESTARTS + 1), { timeout: 3_600_000, interval: 5 });
        // One is killed in the middle of what it does, the other one is told to stop.
        await end(readers[i], i === 0 ? 'SIGKILL' : 'SIGTERM');
        readers[i] = await prefill();
        await count(answerers[i]);
        const toldMs = performance.now();
        stopping.add(answerers[i]);
        expect(await end(answerers[i])).toBe(0);
        slowestStopMs = Math.max(slowestStopMs, performance.now() - toldMs);
        answerers[i] = await decode();
        counts.restarts += 2;
      }
    };
    const began = performance.now();
    await Promise.all([restart(), ...Array.from({ length: CLIENTS }, client)]);
    const seconds = (performance.now() - began) / 1000;
    for (const each of answerers) await count(each);
    expect(counts.answered).toBe(REQUESTS);
    expect(counts.restarts).toBe(2 * RESTARTS);
    expect(counts.moved).toBeGreaterThan(0);
    for (const each of [...readers, ...answerers]) await holdsNothing(each);
    tookMs.sort((a, b) => a - b);
    const atMost = (share: number) => Math.round(tookMs[Math.ceil(share * tookMs.length) - 1]);
    process.stdout.write(
      `load over 2 + 2 processes: ${JSON.stringify({ ...counts, seconds: Math.round(seconds), halfWithinMs: atMost(0.5), allWithinMs: atMost(1), slowestStopMs: Math.round(slowestStopMs) })}\n`,
    );
    expect(await Promise.all([...readers, ...answerers].map((each) => end(each)))).toEqual([0, 0, 0, 0]);
  });
});
