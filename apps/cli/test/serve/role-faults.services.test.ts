import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { type Fault, FaultProxy, freePorts, hasServer } from '@bufferwise-internal/services';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { ask, clusterOf, end, figures, holdsNothing, knows, movesOf, post, promptOf, WAIT } from '../support/served-client.ts';
import { ServedCluster, startAlone } from '../support/served-cluster.ts';
import type { ServedProcess } from '../support/served-process.ts';

// A software device on a busy machine takes its time; nothing here is about speed.
vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 });

type Strike = (bytes: Buffer) => Buffer | null | undefined;

describe.runIf(hasServer('nats'))('prompts that move between processes, two that read and one that answers,', () => {
  let cluster: ServedCluster;
  /** Answers everything by itself. */
  let alone: ServedProcess;
  let answerer: ServedProcess;
  let readers: ServedProcess[];
  /** What lies between them, for pages. */
  let network: FaultProxy;
  /** Bytes that go to the answering side while a prompt moves, where nothing is amiss. */
  let usualBytes = 0;
  const started: ChildProcess[] = [];
  beforeAll(async () => {
    cluster = await ServedCluster.start();
    const [port] = await freePorts(1);
    network = await FaultProxy.start(port);
    [alone, answerer, ...readers] = await Promise.all([
      startAlone(started),
      cluster.decode('--pages', `127.0.0.1:${port}`, '--pages-as', `127.0.0.1:${network.port}`),
      cluster.prefill('--drain-timeout', '5m'),
      cluster.prefill('--drain-timeout', '5m'),
    ]);
    await knows(answerer, { prefill: 2 });
    network.fault = {
      toServer: {
        change(bytes) {
          usualBytes += bytes.length;
          return bytes;
        },
      },
    };
    await expectMoved('as usual');
    network.fault = {};
  });
  afterEach(() => {
    network.fault = {};
  });
  afterAll(async () => {
    for (const child of started) child.kill('SIGKILL');
    await cluster?.stop();
    await network?.stop();
  });

  const retries = async () => (await figures(answerer)).get('prompt_move_retries_total') ?? 0;

  /** Asks for what has to be read by another process, and expects the answer of one. */
  async function expectMoved(name: string): Promise<void> {
    const expected = await ask(alone, promptOf(name));
    const before = await movesOf(answerer, 'moved');
    expect(await ask(answerer, promptOf(name))).toEqual(expected);
    expect(await movesOf(answerer, 'moved')).toBe(before + 1);
  }

  /** Strikes once, in the middle of a prompt's pages. */
  function inTheMiddle(strike: Strike): Fault {
    let passed = 0;
    return {
      toServer: {
        change(bytes) {
          const before = passed;
          passed += bytes.length;
          return before <= usualBytes / 2 && passed > usualBytes / 2 ? strike(bytes) : bytes;
        },
      },
    };
  }

  const lost: Record<string, Strike> = {
    'a bit is another': (bytes) => {
      const changed = Buffer.from(bytes);
      changed[changed.length >> 1] ^= 1;
      return changed;
    },
    'noise comes in their place': (bytes) => randomBytes(bytes.length),
    'some bytes are lost': () => undefined,
    'some bytes come twice': (bytes) => Buffer.concat([bytes, bytes]),
    'the connection ends': () => null,
    'all connections are reset': () => {
      network.reset();
      return undefined;
    },
  };
  it.each(Object.entries(lost))('come over another connection when in their middle %s', async (name, strike) => {
    const before = await retries();
    let struck = 0;
    network.fault = inTheMiddle((bytes) => {
      struck++;
      return strike(bytes);
    });
    await expectMoved(name);
    expect(struck).toBe(1);
    expect(await retries()).toBeGreaterThan(before);
    for (const each of [answerer, ...readers]) await holdsNothing(each);
  });

  it('come when everything comes late', async () => {
    network.fault = { toServer: { delayMs: 40 }, toClient: { delayMs: 40 } };
    await expectMoved('late');
    for (const each of [answerer, ...readers]) await holdsNothing(each);
  });

  /** A prompt in the middle of whose pages everything stands still, until the network has no fault. */
  async function standingStill(
    name: string,
  ): Promise<{ answer: Promise<unknown[]>; expected: unknown[]; reader: ServedProcess }> {
    const expected = await ask(alone, promptOf(name));
    network.fault = inTheMiddle((bytes) => {
      network.fault = { toServer: { hold: true } };
      return bytes;
    });
    const answer = ask(answerer, promptOf(name));
    answer.catch(() => {});
    const reader = await vi.waitFor(async () => {
      expect((await clusterOf(answerer)).moves.holding).toBe(1);
      const outgoing = await Promise.all(readers.map(async (each) => (await clusterOf(each)).moves.outgoing));
      expect(outgoing.toSorted()).toEqual([0, 1]);
      return readers[outgoing.indexOf(1)];
    }, WAIT);
    return { answer, expected, reader };
  }

  it('go on behind a silence that ends', async () => {
    const before = await retries();
    const { answer, expected } = await standingStill('silence');
    network.fault = {};
    expect(await answer).toEqual(expected);
    expect(await retries()).toBe(before);
    for (const each of [answerer, ...readers]) await holdsNothing(each);
  });

  it('are read where they are answered when the silence does not end, and nobody goes on holding them', async () => {
    const [port] = await freePorts(1);
    const silent = await FaultProxy.start(port);
    try {
      const other = await cluster.decode(
        ...['--pages', `127.0.0.1:${port}`, '--pages-as', `127.0.0.1:${silent.port}`, '--prefill-timeout', '1s'],
      );
      await knows(other, { prefill: 2 });
      const expected = await ask(alone, promptOf('no end'));
      silent.fault = inTheMiddle((bytes) => {
        silent.fault = { toServer: { hold: true }, toClient: { hold: true } };
        return bytes;
      });
      expect(await ask(other, promptOf('no end'))).toEqual(expected);
      expect(await movesOf(other, 'timeout')).toBe(1);
      // The control plane tells those whom the link does not reach.
      for (const each of [other, ...readers]) await holdsNothing(each);
      expect(await end(other)).toBe(0);
    } finally {
      await silent.stop();
    }
  });

  it('go on while NATS is away, others are read here meanwhile, and it is found again', async () => {
    const { answer, expected } = await standingStill('no NATS');
    await cluster.nats.kill();
    network.fault = {};
    // What is on its way needs no NATS.
    expect(await answer).toEqual(expected);
    await vi.waitFor(async () => expect((await clusterOf(answerer)).connected).toBe(false), WAIT);
    const before = await movesOf(answerer, 'control-lost');
    expect(await ask(answerer, promptOf('meanwhile'))).toEqual(await ask(alone, promptOf('meanwhile')));
    expect(await movesOf(answerer, 'control-lost')).toBe(before + 1);
    await cluster.nats.restart();
    await vi.waitFor(async () => expect((await clusterOf(answerer)).connected).toBe(true), WAIT);
    for (const each of [answerer, ...readers]) await holdsNothing(each);
    await knows(answerer, { prefill: 2 });
    await expectMoved('afterwards');
  });

  it('come from the other one when the one that reads them is killed', async () => {
    const before = await retries();
    const { answer, expected, reader } = await standingStill('killed');
    await end(reader, 'SIGKILL');
    network.fault = {};
    expect(await answer).toEqual(expected);
    expect(await retries()).toBe(before + 1);
    readers = readers.filter((each) => each !== reader);
    for (const each of [answerer, ...readers]) await holdsNothing(each);
    await knows(answerer, { prefill: 1 });
    readers.push(await cluster.prefill('--drain-timeout', '5m'));
    await knows(answerer, { prefill: 2 });
  });

  it('come to their end from one that is told to stop', async () => {
    const before = await retries();
    const { answer, expected, reader } = await standingStill('drained');
    reader.child.kill('SIGTERM');
    await knows(answerer, { prefill: 1 });
    network.fault = {};
    expect(await answer).toEqual(expected);
    expect(await reader.exit).toBe(0);
    expect(await retries()).toBe(before);
    readers = readers.filter((each) => each !== reader);
    for (const each of [answerer, ...readers]) await holdsNothing(each);
  });

  it('are let go of where they are read when the one that answers is killed', async () => {
    readers.push(await cluster.prefill());
    await knows(answerer, { prefill: 2 });
    await standingStill('nobody');
    await end(answerer, 'SIGKILL');
    network.fault = {};
    for (const each of readers) await holdsNothing(each);
    await expect(post(answerer, 'anything')).rejects.toThrow();
  });
});
