import { randomBytes } from 'node:crypto';
import { type Fault, FaultProxy, freePorts, hasServer } from '@bufferwise-internal/services';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  answersAlone,
  ask,
  clusterOf,
  end,
  figures,
  holdsNothing,
  knows,
  movesOf,
  promptOf,
  WAIT,
} from '../support/served-client.ts';
import { ServedCluster } from '../support/served-cluster.ts';
import type { ServedProcess } from '../support/served-process.ts';
import { GRANITE } from '../support/test-server.ts';

// A software device on a busy machine takes its time; nothing here is about speed.
vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 });

const LOST = [
  'noise comes in their place',
  'some bytes are lost',
  'some bytes come twice',
  'the connection ends',
  'all connections are reset',
] as const;
/** Prompts of these tests. */
const NAMES = [
  ...LOST,
  'as usual',
  'a bit',
  'late',
  'silence',
  'no end',
  'nobody',
  'no NATS',
  'meanwhile',
  'afterwards',
  'killed',
  'drained',
] as const;

type Strike = (bytes: Buffer) => Buffer | null | undefined;

describe.runIf(hasServer('nats'))('prompts that move between processes, two that read and one that answers,', () => {
  let cluster: ServedCluster;
  let answerer: ServedProcess;
  let readers: ServedProcess[];
  /** What lies between them, for pages. */
  let network: FaultProxy;
  /** Bytes that go to the answering side while a prompt moves, where nothing is amiss. */
  let usualBytes = 0;
  /** What the answering process says to prompts that it reads itself. */
  let expected: Map<string, unknown[]>;
  beforeAll(async () => {
    cluster = await ServedCluster.start({ model: GRANITE });
    const [port] = await freePorts(1);
    network = await FaultProxy.start(port);
    answerer = await cluster.decode('--pages', `127.0.0.1:${port}`, '--pages-as', `127.0.0.1:${network.port}`);
    expected = await answersAlone(answerer, NAMES.map(promptOf));
    const reader = () => cluster.prefill('--drain-timeout', '5m');
    readers = await Promise.all([reader(), reader()]);
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
    await cluster?.stop();
    await network?.stop();
  });

  const retries = async () => (await figures(answerer)).get('prompt_move_retries_total') ?? 0;

  const expectedOf = (name: (typeof NAMES)[number]) => expected.get(promptOf(name));

  /** Asks for what has to be read by another process, and expects the answer of one. */
  async function expectMoved(name: (typeof NAMES)[number]): Promise<void> {
    const before = await movesOf(answerer, 'moved');
    expect(await ask(answerer, promptOf(name))).toEqual(expectedOf(name));
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

  it('come although a bit of them is another', async () => {
    network.fault = inTheMiddle((bytes) => {
      const changed = Buffer.from(bytes);
      changed[changed.length >> 1] ^= 1;
      return changed;
    });
    await expectMoved('a bit');
    for (const each of [answerer, ...readers]) await holdsNothing(each);
  });

  const lost: Record<(typeof LOST)[number], Strike> = {
    'noise comes in their place': (bytes) => randomBytes(bytes.length),
    'some bytes are lost': () => undefined,
    'some bytes come twice': (bytes) => Buffer.concat([bytes, bytes]),
    'the connection ends': () => null,
    'all connections are reset': () => {
      network.reset();
      return undefined;
    },
  };
  it.each(LOST)('come over another connection when in their middle %s', async (name) => {
    const before = await retries();
    let struck = 0;
    network.fault = inTheMiddle((bytes) => {
      struck++;
      return lost[name](bytes);
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
    name: (typeof NAMES)[number],
    server = answerer,
    between = network,
  ): Promise<{ answer: Promise<unknown[]>; reader: ServedProcess }> {
    between.fault = inTheMiddle((bytes) => {
      between.fault = { toServer: { hold: true } };
      return bytes;
    });
    const answer = ask(server, promptOf(name));
    answer.catch(() => {});
    const reader = await vi.waitFor(async () => {
      expect((await clusterOf(server)).moves.holding).toBe(1);
      const outgoing = await Promise.all(readers.map(async (each) => (await clusterOf(each)).moves.outgoing));
      expect(outgoing.filter((count) => count > 0)).toEqual([1]);
      expect((await figures(server)).get('cache_open_requests')).toBe(1);
      return readers[outgoing.indexOf(1)];
    }, WAIT);
    return { answer, reader };
  }

  it('go on behind a silence that ends', async () => {
    const before = await retries();
    const { answer } = await standingStill('silence');
    network.fault = {};
    expect(await answer).toEqual(expectedOf('silence'));
    expect(await retries()).toBe(before);
    for (const each of [answerer, ...readers]) await holdsNothing(each);
  });

  it('are read where they are answered when the silence has no end, and nobody holds them then, nor when who answers is killed', async () => {
    const [port] = await freePorts(1);
    const silent = await FaultProxy.start(port);
    onTestFinished(() => silent.stop());
    const places = ['--pages', `127.0.0.1:${port}`, '--pages-as', `127.0.0.1:${silent.port}`];
    const impatient = await cluster.decode(...places, '--prefill-timeout', '2s');
    await knows(impatient, { prefill: 2 });
    silent.fault = inTheMiddle((bytes) => {
      silent.fault = { toServer: { hold: true }, toClient: { hold: true } };
      return bytes;
    });
    expect(await ask(impatient, promptOf('no end'))).toEqual(expectedOf('no end'));
    expect(await movesOf(impatient, 'timeout')).toBe(1);
    // The control plane tells those whom the link does not reach.
    for (const each of [impatient, ...readers]) await holdsNothing(each);
    silent.fault = {};
    const { answer } = await standingStill('nobody', impatient, silent);
    await end(impatient, 'SIGKILL');
    silent.fault = {};
    await expect(answer).rejects.toThrow();
    for (const each of readers) await holdsNothing(each);
  });

  it('go on while NATS is away, others are read here meanwhile, and it is found again', async () => {
    const { answer } = await standingStill('no NATS');
    await cluster.nats.kill();
    network.fault = {};
    // What is on its way needs no NATS.
    expect(await answer).toEqual(expectedOf('no NATS'));
    await vi.waitFor(async () => expect((await clusterOf(answerer)).connected).toBe(false), WAIT);
    const before = await movesOf(answerer, 'control-lost');
    expect(await ask(answerer, promptOf('meanwhile'))).toEqual(expectedOf('meanwhile'));
    expect(await movesOf(answerer, 'control-lost')).toBe(before + 1);
    await cluster.nats.restart();
    await vi.waitFor(async () => expect((await clusterOf(answerer)).connected).toBe(true), WAIT);
    for (const each of [answerer, ...readers]) await holdsNothing(each);
    await knows(answerer, { prefill: 2 });
    await expectMoved('afterwards');
  });

  it('come from the other one when the one that reads them is killed', async () => {
    const before = await retries();
    const { answer, reader } = await standingStill('killed');
    await end(reader, 'SIGKILL');
    network.fault = {};
    expect(await answer).toEqual(expectedOf('killed'));
    expect(await retries()).toBe(before + 1);
    readers = readers.filter((each) => each !== reader);
    for (const each of [answerer, ...readers]) await holdsNothing(each);
    await knows(answerer, { prefill: 1 });
  });

  it('come to their end from one that is told to stop', async () => {
    const before = await retries();
    const { answer, reader } = await standingStill('drained');
    reader.child.kill('SIGTERM');
    await knows(answerer, { prefill: 0 });
    network.fault = {};
    expect(await answer).toEqual(expectedOf('drained'));
    expect(await reader.exit).toBe(0);
    expect(await retries()).toBe(before);
    await holdsNothing(answerer);
  });
});
