import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { blockKeys } from '@bufferwise/cache-manager/outside';
import { fullAttention, slidingWindow } from '@bufferwise/core-policy';
import { hasServer, LOCALHOST, NatsProcess } from '@bufferwise-internal/services';
import { type NatsConnection, nkeyAuthenticator, nkeys } from '@nats-io/nats-core';
import { connect } from '@nats-io/transport-node';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { connectNats } from '../src/control/connect-nats.ts';
import { ControlError } from '../src/control/control-error.ts';
import type { Job, WorkerRole } from '../src/control/control-message.ts';
import { type ControlAnswer, ControlRouter, type ControlRouterOptions } from '../src/control/control-router.ts';
import { ControlWorker, type ControlWorkerOptions } from '../src/control/control-worker.ts';
import type { TransferLayout } from '../src/transfer/transfer-layout.ts';

const LAYOUT: TransferLayout = {
  tokensPerBlock: 4,
  groups: [
    { lifecycle: fullAttention(), buffers: [], pageBytes: 16 },
    { lifecycle: slidingWindow(8), buffers: [], pageBytes: 8 },
  ],
};
/** Short, so that a test that waits for one of them waits little; long enough for a busy machine. */
const TIMES = {
  heartbeatMs: 100,
  expiryMs: 600,
  takeMs: 500,
  progressMs: 100,
  leaseMs: 2_000,
  retryMs: 20,
  noWorkerMs: 1_500,
  controlLostMs: 20_000,
};
const TOKENS = Array.from({ length: 40 }, (_, i) => i);

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function natsServer(settings: readonly string[] = []): Promise<NatsProcess> {
  const nats = await NatsProcess.start({ settings });
  ends.push(() => nats.stop());
  return nats;
}

async function connection(url: string, options: object = {}): Promise<NatsConnection> {
  const nats = await connectNats(connect, { servers: url, reconnectTimeWait: 20, reconnectJitter: 20, ...options });
  ends.push(() => nats.close());
  return nats;
}

async function routerOn(url: string, options: Partial<ControlRouterOptions> = {}): Promise<ControlRouter> {
  const router = await ControlRouter.start({
    nats: options.nats ?? (await connection(url)),
    fingerprint: 'model',
    layout: LAYOUT,
    times: TIMES,
    ...options,
  });
  ends.push(() => router.close());
  return router;
}

interface WorkerSetup extends Partial<ControlWorkerOptions> {
  readonly role: WorkerRole;
}

async function workerOn(url: string, setup: WorkerSetup): Promise<ControlWorker> {
  const worker = await ControlWorker.start({
    nats: setup.nats ?? (await connection(url)),
    fingerprint: 'model',
    layout: LAYOUT,
    times: TIMES,
    address: `pages of ${setup.id}`,
    load: () => ({ freePages: 10, active: 0, waiting: 0 }),
    run: async (job) => `${setup.id} did ${job.body}`,
    ...setup,
  });
  ends.push(() => worker.close());
  return worker;
}

const names = (router: ControlRouter) =>
  router
    .workers()
    .map(({ id }) => id)
    .sort();
const seen = (router: ControlRouter, ...ids: string[]) => vi.waitFor(() => expect(names(router)).toEqual([...ids].sort()), 5000);

/** What ends a job later, and what saw it begin. */
function gate() {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
}

describe.runIf(hasServer('nats'))('over NATS', () => {
  test('workers are found with what they say of themselves, whoever starts first, and those that are killed expire', async () => {
    const nats = await natsServer();
    await workerOn(nats.url, { role: 'prefill', id: 'p', slots: 3 });
    const router = await routerOn(nats.url);
    const dying = await connection(nats.url);
    await workerOn(nats.url, { role: 'decode', id: 'd', nats: dying });
    await seen(router, 'd', 'p');
    expect(router.workers().find(({ id }) => id === 'p')).toMatchObject({
      role: 'prefill',
      address: 'pages of p',
      fingerprint: 'model',
      slots: 3,
      draining: false,
      fits: true,
      load: { freePages: 10, active: 0, waiting: 0 },
    });
    await dying.close();
    await seen(router, 'p');
  });

  test('a request goes to a worker that prefills and one that decodes, which learn of each other', async () => {
    const nats = await natsServer();
    const jobs: Job[] = [];
    const run = (id: string) => async (job: Job) => {
      jobs.push(job);
      return `${id} did ${job.body}`;
    };
    await workerOn(nats.url, { role: 'prefill', id: 'p', run: run('p') });
    await workerOn(nats.url, { role: 'decode', id: 'd', run: run('d') });
    const router = await routerOn(nats.url);
    await seen(router, 'd', 'p');
    const answer = await router.submit({ request: 'r', tokens: TOKENS, body: 'it' });
    expect(answer).toMatchObject({ result: 'd did it', generation: 0, decode: 'd' });
    await vi.waitFor(() => expect(jobs).toHaveLength(2), 30_000);
    expect(jobs.find(({ role }) => role === 'decode')).toMatchObject({ request: 'r', generation: 0, moves: true, decode: null });
    expect(jobs.find(({ role }) => role === 'prefill')).toMatchObject({
      request: 'r',
      generation: 0,
      decode: { worker: 'd', address: 'pages of d' },
    });
  });

  test('each prefill job is taken by exactly one of a queue group', async () => {
    const nats = await natsServer();
    const taken = new Map<string, string[]>();
    const done = new Map<string, () => void>();
    for (const id of ['p1', 'p2', 'p3'])
      await workerOn(nats.url, {
        role: 'prefill',
        id,
        slots: 100,
        run: async ({ request, generation }) => {
          const job = `${request} ${generation}`;
          taken.set(job, [...(taken.get(job) ?? []), id]);
          done.get(request)?.();
          return '';
        },
      });
    await workerOn(nats.url, {
      role: 'decode',
      id: 'd',
      slots: 100,
      run: ({ request }) =>
        new Promise((resolve) => {
          done.set(request, () => resolve('answer'));
        }),
    });
    const router = await routerOn(nats.url);
    await seen(router, 'd', 'p1', 'p2', 'p3');
    const answers = await Promise.all(
      Array.from({ length: 90 }, (_, i) => router.submit({ request: `r${i}`, tokens: [i], body: '' })),
    );
    expect(answers.map(({ generation }) => generation)).toEqual(answers.map(() => 0));
    expect([...taken.values()].map((ids) => ids.length)).toEqual(answers.map(() => 1));
    expect(new Set([...taken.values()].flat())).toEqual(new Set(['p1', 'p2', 'p3']));
  });

  test('a request goes where most of its prompt is', async () => {
    const nats = await natsServer();
    const workers = new Map<string, ControlWorker>();
    for (const id of ['b1', 'b2', 'b3']) workers.set(id, await workerOn(nats.url, { role: 'both', id }));
    const router = await routerOn(nats.url, { routing: { weights: { fullTokens: 1 }, localPrefillTokens: 4 } });
    await seen(router, 'b1', 'b2', 'b3');
    const keys = blockKeys(TOKENS, undefined, 4);
    for (const [groupId, { lifecycle }] of LAYOUT.groups.entries())
      workers.get('b2')?.events.push([
        {
          id: 0,
          type: 'stored',
          groupId: groupId as never,
          lifecycle,
          tier: 0,
          medium: 'device',
          scope: {},
          parentKey: null,
          blocks: keys.map((key, i) => ({ key, tokens: TOKENS.slice(i * 4, i * 4 + 4), priority: 0 })),
        },
      ] as never);
    await vi.waitFor(() => expect(router.statistics().indexedBlocks).toBe(10), 30_000);
    for (let i = 0; i < 5; i++)
      expect(await router.submit({ request: `r${i}`, tokens: TOKENS, body: '' })).toMatchObject({ decode: 'b2', prefill: null });
    // One who comes later hears it all from the beginning.
    const late = await routerOn(nats.url);
    await vi.waitFor(() => expect(late.statistics().indexedBlocks).toBe(10), 5000);
    workers.get('b2')?.events.push([{ id: 1, type: 'cleared' }]);
    await vi.waitFor(() => expect([router, late].map((each) => each.statistics().indexedBlocks)).toEqual([0, 0]), 30_000);
  });

  test('a worker that drains takes no new jobs, ends those it has, and leaves', async () => {
    const nats = await natsServer();
    const { open, opened } = gate();
    const first = await workerOn(nats.url, {
      role: 'both',
      id: 'b1',
      run: async () => {
        await opened;
        return 'b1';
      },
    });
    const router = await routerOn(nats.url);
    await seen(router, 'b1');
    const early = router.submit({ request: 'early', tokens: TOKENS, body: '' });
    await vi.waitFor(() => expect(first.numRunning).toBe(1), 30_000);
    const drained = first.drain();
    await vi.waitFor(() => expect(router.workers()[0]).toMatchObject({ draining: true }), 30_000);
    await workerOn(nats.url, { role: 'both', id: 'b2' });
    expect(await router.submit({ request: 'late', tokens: TOKENS, body: '' })).toMatchObject({ decode: 'b2' });
    expect(first.numRunning).toBe(1);
    open();
    expect(await early).toMatchObject({ result: 'b1', generation: 0 });
    await drained;
    await seen(router, 'b2');
  });

  test('what a worker does not end in time is done by another, and so is what it had when it was killed', async () => {
    const nats = await natsServer();
    const signals: AbortSignal[] = [];
    const forEver = (_: Job, signal: AbortSignal) => {
      signals.push(signal);
      return new Promise<string>(() => {});
    };
    const slow = await workerOn(nats.url, { role: 'both', id: 'slow', run: forEver });
    const mortal = await connection(nats.url);
    const router = await routerOn(nats.url);
    await seen(router, 'slow');
    const first = router.submit({ request: 'r1', tokens: TOKENS, body: 'it' });
    await vi.waitFor(() => expect(slow.numRunning).toBe(1), 30_000);
    await workerOn(nats.url, { role: 'both', id: 'mortal', run: forEver, nats: mortal });
    await seen(router, 'mortal', 'slow');
    await slow.drain({ limitMs: 10 });
    await vi.waitFor(() => expect(signals).toHaveLength(2), 30_000);
    expect(signals[0].aborted).toBe(true);
    await workerOn(nats.url, { role: 'both', id: 'good' });
    await mortal.close();
    expect(await first).toMatchObject({ result: 'good did it', generation: 2 });
  });

  test('NATS that is killed in the middle and comes back loses nothing', async () => {
    const nats = await natsServer();
    const { open, opened } = gate();
    let begun = 0;
    for (const id of ['p', 'd'])
      await workerOn(nats.url, {
        role: id === 'p' ? 'prefill' : 'decode',
        id,
        slots: 50,
        run: async (job) => {
          begun++;
          await opened;
          return `${id} did ${job.body}`;
        },
      });
    const router = await routerOn(nats.url);
    await seen(router, 'd', 'p');
    const early = Array.from({ length: 20 }, (_, i) => router.submit({ request: `early${i}`, tokens: [i], body: `${i}` }));
    await vi.waitFor(() => expect(begun).toBe(40), 30_000);
    await nats.kill();
    const meanwhile = Array.from({ length: 20 }, (_, i) => router.submit({ request: `mean${i}`, tokens: [i], body: `${i}` }));
    open();
    await nats.restart();
    const answers = await Promise.all([...early, ...meanwhile]);
    expect(answers.map(({ result }) => result)).toEqual([...early, ...meanwhile].map((_, i) => `d did ${i % 20}`));
    // What ran went on running: it was done once.
    expect(answers.slice(0, 20).map(({ generation }) => generation)).toEqual(early.map(() => 0));
    expect(router.statistics().openJobs).toBe(0);
  });

  test('without NATS for long, and without workers, a job fails and says why', async () => {
    const nats = await natsServer();
    const times = { ...TIMES, controlLostMs: 300, noWorkerMs: 200 };
    const router = await routerOn(nats.url, { times });
    await workerOn(nats.url, { role: 'both', id: 'other', fingerprint: 'another model' });
    await seen(router, 'other');
    const job = (request: string) => router.submit({ request, tokens: TOKENS, body: '' });
    await expect(job('r1')).rejects.toMatchObject({ code: 'no-worker', message: expect.stringContaining('1 of another model') });
    const closing = await routerOn(nats.url, { times });
    const pending = expect(closing.submit({ request: 'r', tokens: TOKENS, body: '' })).rejects.toMatchObject({
      code: 'control-closed',
    });
    await closing.close();
    await pending;
    await expect(closing.submit({ request: 'r', tokens: TOKENS, body: '' })).rejects.toMatchObject({ code: 'control-closed' });
    await nats.kill();
    await expect(job('r2')).rejects.toMatchObject({ code: 'control-lost' });
  });

  test('a caller that gives up, a time that is over and a worker that refuses end a job everywhere', async () => {
    const nats = await natsServer();
    let stopped = 0;
    const worker = await workerOn(nats.url, {
      role: 'both',
      id: 'b',
      run: ({ body }, signal) => {
        if (body === 'long') return Promise.resolve('x'.repeat(1 << 20));
        if (body === 'no') throw new ControlError('job-refused', 'the prompt is too long for this model');
        return new Promise((_, reject) => {
          signal.addEventListener('abort', () => {
            stopped++;
            reject(signal.reason);
          });
        });
      },
    });
    const router = await routerOn(nats.url);
    await seen(router, 'b');
    const stop = new AbortController();
    const job = (request: string, options: object = {}, body = '') => router.submit({ request, tokens: TOKENS, body }, options);
    const given = job('r1', { signal: stop.signal });
    await vi.waitFor(() => expect(worker.numRunning).toBe(1), 30_000);
    await expect(job('r1')).rejects.toMatchObject({ code: 'invalid-job' });
    stop.abort(new Error('enough'));
    await expect(given).rejects.toThrow('enough');
    await expect(job('r2', { limitMs: 100 })).rejects.toMatchObject({ code: 'job-timeout' });
    await vi.waitFor(() => expect({ running: worker.numRunning, stopped }).toEqual({ running: 0, stopped: 2 }), 30_000);
    await expect(job('r3', {}, 'no')).rejects.toMatchObject({
      code: 'job-refused',
      message: expect.stringContaining('too long for this model'),
    });
    await expect(job('r5', {}, 'long')).rejects.toMatchObject({
      code: 'job-refused',
      message: expect.stringContaining('the result takes'),
    });
    await expect(job('r4', {}, 'x'.repeat(1 << 20))).rejects.toMatchObject({ code: 'invalid-job' });
    await expect(job('')).rejects.toMatchObject({ code: 'invalid-job' });
  });

  test('a server that wants a password gets it, and without it there is no connection', async () => {
    const nats = await natsServer(['--user', 'me', '--pass', 'secret']);
    await expect(connectNats(connect, { servers: nats.url })).rejects.toMatchObject({ code: 'control-lost' });
    const login = { user: 'me', pass: 'secret' };
    const router = await routerOn(nats.url, { nats: await connection(nats.url, login) });
    await workerOn(nats.url, { role: 'both', id: 'b', nats: await connection(nats.url, login) });
    await seen(router, 'b');
  });

  test('a server that wants TLS and a key pair gets them', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'bufferwise-nats-test-'));
    ends.push(() => rm(folder, { recursive: true }));
    const user = nkeys.createUser();
    await writeFile(join(folder, 'cert.pem'), LOCALHOST.cert);
    await writeFile(join(folder, 'key.pem'), LOCALHOST.key);
    await writeFile(
      join(folder, 'nats.conf'),
      `tls { cert_file: "${folder}/cert.pem", key_file: "${folder}/key.pem" }
       authorization { users: [{ nkey: ${user.getPublicKey()} }] }`,
    );
    const nats = await natsServer(['--config', join(folder, 'nats.conf')]);
    const tls = { ca: LOCALHOST.cert };
    await expect(connectNats(connect, { servers: nats.url, tls })).rejects.toMatchObject({ code: 'control-lost' });
    const login = { tls, authenticator: nkeyAuthenticator(user.getSeed()) };
    const router = await routerOn(nats.url, { nats: await connection(nats.url, login) });
    await workerOn(nats.url, { role: 'both', id: 'b', nats: await connection(nats.url, login) });
    await seen(router, 'b');
  });

  test('a server that hangs is noticed, and what was asked meanwhile is done when it goes on', async () => {
    const nats = await natsServer();
    const eager = { pingInterval: 100, maxPingOut: 2 };
    await workerOn(nats.url, { role: 'both', id: 'b', nats: await connection(nats.url, eager) });
    const link = await connection(nats.url, eager);
    const router = await routerOn(nats.url, { nats: link });
    await seen(router, 'b');
    const noticed = (async () => {
      for await (const { type } of link.status()) if (type === 'disconnect') return;
    })();
    nats.freeze();
    const answer = router.submit({ request: 'r', tokens: TOKENS, body: 'it' });
    await noticed;
    nats.thaw();
    expect(await answer).toMatchObject({ result: 'b did it' });
  });

  test('where NATS is not trusted, nobody without the key is heard, and nothing is heard twice', async () => {
    const nats = await natsServer();
    const key = new Uint8Array(32).fill(5);
    const troubles: unknown[] = [];
    const router = await routerOn(nats.url, { key, onTrouble: (error) => troubles.push(error) });
    const tapped: { subject: string; data: Uint8Array }[] = [];
    const stranger = await connection(nats.url);
    stranger.subscribe('bufferwise.>', { callback: (_, { subject, data }) => void tapped.push({ subject, data: data.slice() }) });
    await workerOn(nats.url, { role: 'both', id: 'none' });
    await workerOn(nats.url, { role: 'both', id: 'wrong', key: new Uint8Array(32).fill(6) });
    const good = await workerOn(nats.url, { role: 'both', id: 'good', key });
    await seen(router, 'good');
    expect(await router.submit({ request: 'r', tokens: TOKENS, body: 'it' })).toMatchObject({ decode: 'good' });
    await good.close();
    await seen(router);
    const before = router.statistics().troubles;
    expect(before).toBeGreaterThan(0);
    // What the worker said, again, and what somebody made up.
    for (const { subject, data } of tapped) stranger.publish(subject, data);
    for (let i = 0; i < 200; i++) stranger.publish('bufferwise.from-worker.good', crypto.getRandomValues(new Uint8Array(i)));
    await stranger.flush();
    await vi.waitFor(() => expect(router.statistics().troubles).toBeGreaterThanOrEqual(before + 200), 30_000);
    expect(names(router)).toEqual([]);
    expect(troubles[0]).toMatchObject({ code: 'invalid-control-message' });
  });

  test('strangers on an open server disturb nobody, whatever they say', async () => {
    const nats = await natsServer();
    const router = await routerOn(nats.url);
    await workerOn(nats.url, { role: 'both', id: 'b' });
    await seen(router, 'b');
    const stranger = await connect({ servers: nats.url });
    const json = (value: unknown) => Buffer.concat([Buffer.from([1, 0]), Buffer.from(JSON.stringify(value))]);
    const mark = { from: 'x', session: 's', startedMs: 1, sentMs: 1 };
    const messages = [
      { kind: 'status' },
      { kind: 'blocks', number: 0, fresh: true, changes: [['+', 99, ['zz']]] },
      { kind: 'job', request: '', generation: -1, role: 'chief', decode: 7, moves: 1, body: null },
      { kind: 'done', request: 'r', generation: 0, role: 'decode', result: 'lie' },
      { kind: '__proto__' },
      null,
      [],
    ];
    let number = 0;
    for (const subject of [
      'bufferwise.from-worker.b',
      `bufferwise.router.${router.id}`,
      'bufferwise.worker.b',
      'bufferwise.workers',
    ])
      for (const message of messages) stranger.publish(subject, json({ ...mark, number: number++, message }));
    await stranger.flush();
    await stranger.close();
    expect(await router.submit({ request: 'r', tokens: TOKENS, body: 'it' })).toMatchObject({ result: 'b did it' });
    expect(names(router)).toEqual(['b']);
  });

  test('two that prefill and two that decode are restarted in turns under load, one is killed, and so is NATS: nothing is lost', async () => {
    const nats = await natsServer();
    const router = await routerOn(nats.url, { routing: { mostRetries: 50 } });
    /** What came of a prefill, for the one who decodes: stands for the pages. */
    const moved = new Set<string>();
    const waitUntil = async (condition: () => boolean, signal: AbortSignal) => {
      while (!condition()) {
        signal.throwIfAborted();
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
    };
    const begin = async (id: string) => {
      const link = await connection(nats.url);
      const worker = await workerOn(nats.url, {
        role: id.startsWith('p') ? 'prefill' : 'decode',
        id,
        slots: 16,
        nats: link,
        run: async ({ request, generation, role, body }, signal) => {
          if (role === 'prefill') {
            await new Promise((resolve) => setTimeout(resolve, 2 + Math.random() * 10));
            signal.throwIfAborted();
            moved.add(`${request} ${generation}`);
            return '';
          }
          await waitUntil(() => moved.has(`${request} ${generation}`), signal);
          return `answer to ${body}`;
        },
      });
      return { worker, link };
    };
    const workers = new Map<string, Awaited<ReturnType<typeof begin>>>();
    for (const id of ['p1', 'p2', 'd1', 'd2']) workers.set(id, await begin(id));
    await seen(router, 'd1', 'd2', 'p1', 'p2');

    const answers: { answer: ControlAnswer; ms: number; body: string }[] = [];
    let numSubmitted = 0;
    let isOver = false;
    const client = async () => {
      while (!isOver) {
        const body = `q${numSubmitted++}`;
        const begunMs = performance.now();
        const answer = await router.submit({ request: body, tokens: [numSubmitted], body });
        answers.push({ answer, ms: performance.now() - begunMs, body });
      }
    };
    const clients = Array.from({ length: 12 }, client);
    const progress = (more: number) => {
      const target = answers.length + more;
      return vi.waitFor(() => expect(answers.length).toBeGreaterThanOrEqual(target), 30_000);
    };
    const restarts: number[] = [];
    for (const id of ['p1', 'd1', 'p2', 'd2']) {
      await progress(100);
      const begunMs = performance.now();
      await workers.get(id)?.worker.drain();
      workers.set(id, await begin(id));
      restarts.push(performance.now() - begunMs);
    }
    await progress(100);
    await workers.get('d1')?.link.close();
    await workers.get('p2')?.link.close();
    workers.set('d1', await begin('d1'));
    workers.set('p2', await begin('p2'));
    await progress(100);
    const killedMs = performance.now();
    await nats.kill();
    await nats.restart();
    await progress(100);
    const outageMs = performance.now() - killedMs;
    isOver = true;
    await Promise.all(clients);

    expect(answers).toHaveLength(numSubmitted);
    for (const { answer, body } of answers) expect(answer.result).toBe(`answer to ${body}`);
    expect(router.statistics()).toMatchObject({ openJobs: 0, failedJobs: 0, doneJobs: numSubmitted });
    await vi.waitFor(() => expect([...workers.values()].map(({ worker }) => worker.numRunning)).toEqual([0, 0, 0, 0]), 5000);
    const times = answers.map(({ ms }) => ms).sort((a, b) => a - b);
    const at = (part: number) => times[Math.floor(times.length * part)].toFixed(1);
    console.info(
      `${numSubmitted} requests, none lost, ${router.statistics().retries} retries; p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, ` +
        `most ${times.at(-1)?.toFixed(0)} ms; rolling restarts ${restarts.map((ms) => ms.toFixed(0)).join(', ')} ms; ` +
        `100 answers after a kill of NATS within ${outageMs.toFixed(0)} ms`,
    );
  });
});
