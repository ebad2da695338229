import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { sealPage } from '@bufferwise/adapter-kit';
import { hasServer, RedisCluster } from '@bufferwise-internal/services';
import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { oracleAnswers } from '../src/gguf/testing/oracle-models.ts';
import { Answerer } from './cluster/answerer.ts';
import type { Answer, Question } from './cluster/question.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

const MODEL = 'granitehybrid-101';
const NUM_TOKENS = 4;
const SEAL_BYTES = 16;
const modelFile = (name: string) =>
  fileURLToPath(new URL(`../../../internal/test-kit/oracle-models/${name}.gguf`, import.meta.url));
const { prompt, greedy } = oracleAnswers(MODEL).reduce((a, b) => (b.prompt.length > a.prompt.length ? b : a));
/** Whole blocks before the last token. */
const WARM_TOKENS = prompt.length - 1 - ((prompt.length - 1) % 8);

/** A value of the cluster as its server has it. */
type Values = Map<string, Buffer>;
/** A page outside is called `bufferwise:{affinity}key`. */
const keyOf = (name: string) => name.slice(name.indexOf('}') + 1);

describe.runIf(hasServer('redis'))('two processes that share a cluster', () => {
  let cluster: RedisCluster;
  let first: Answerer;
  let second: Answerer;
  /** What the first process left. */
  let left: Values;
  /** What it left of another text. */
  let foreign: Values;
  let cold: Answer;

  const question = (more: Partial<Question> = {}): Question => ({
    urls: cluster.nodes.map(({ url }) => url),
    modelFile: modelFile(MODEL),
    prompt,
    maxNewTokens: NUM_TOKENS,
    ...more,
  });

  /** Each master with a client that reads bytes as they are. */
  async function onMasters<T>(work: (send: (...words: (string | Buffer)[]) => Promise<unknown>) => Promise<T>): Promise<T[]> {
    const answers: T[] = [];
    for (const { url } of cluster.nodes.slice(0, 3)) {
      const client = await createClient({ url }).connect();
      try {
        answers.push(await work((...words) => client.sendCommand(words, { typeMapping: { 36: Buffer } })));
      } finally {
        client.destroy();
      }
    }
    return answers;
  }

  async function values(): Promise<Values> {
    const found = await onMasters(async (send) => {
      const names = ((await send('KEYS', '*')) as Buffer[]).map(String);
      return Promise.all(names.map(async (name) => [name, (await send('GET', name)) as Buffer] as const));
    });
    return new Map(found.flat());
  }

  /** Puts something in the place of every page. A node that has not the slot of a name refuses it. */
  async function replace(write: (name: string, sealed: Buffer) => (string | Buffer)[]): Promise<void> {
    let numReplaced = 0;
    await onMasters(async (send) => {
      for (const [name, sealed] of left) {
        const isHere = await send('DEL', name).then(
          () => true,
          () => false,
        );
        if (!isHere) continue;
        await send(...write(name, sealed));
        numReplaced++;
      }
    });
    expect(numReplaced).toBe(left.size);
  }

  beforeAll(async () => {
    cluster = await RedisCluster.start();
    first = await Answerer.start();
    second = await Answerer.start();
    cold = await first.ask(question());
    left = await values();
    await first.ask(question({ prompt: prompt.toReversed() }));
    foreign = await values();
    for (const name of left.keys()) foreign.delete(name);
  });
  afterAll(async () => {
    await first?.end();
    await second?.end();
    await cluster?.stop();
  });

  it('the second begins with what the first one left, and answers the same', async () => {
    expect(cold).toMatchObject({ tokens: greedy.slice(0, NUM_TOKENS), reusedTokens: 0, store: { hits: 0, damaged: 0 } });
    expect(left.size).toBe(cold.store.stored);
    const warm = await second.ask(question());
    expect(warm.pid).not.toBe(cold.pid);
    expect(warm).toMatchObject({ tokens: cold.tokens, reusedTokens: WARM_TOKENS, outside: { failedLoads: 0 } });
    expect(warm.store).toMatchObject({ damaged: 0, misses: 0, timeouts: 0, connectionErrors: 0 });
    expect(warm.store.hits).toBeGreaterThan(0);
  });

  const changed = (change: (sealed: Buffer) => void) => (name: string, sealed: Buffer) => {
    const copy = Buffer.from(sealed);
    change(copy);
    return ['SET', name, copy];
  };
  /** @param at from the end where it is below 0 */
  const flipped = (at: number) =>
    changed((sealed) => {
      sealed[at < 0 ? sealed.length + at : at] ^= 4;
    });
  /** A page of as many bytes of the other text. */
  const foreignLike = (sealed: Buffer) => {
    const found = [...foreign.values()].find(({ length }) => length === sealed.length);
    if (found === undefined) throw new Error(`The other text has no page of ${sealed.length} bytes.`);
    return found;
  };

  describe('what was damaged is never used, is counted, and is stored anew:', () => {
    it.each<[string, (name: string, sealed: Buffer) => (string | Buffer)[]]>([
      ['a flipped bit of the page', flipped(SEAL_BYTES + 5)],
      ['a flipped bit of the last byte', flipped(-1)],
      ['a flipped bit of the checksum', flipped(12)],
      ['a seal of an older version', changed((sealed) => void sealed.writeUInt32LE(0, 4))],
      ['a seal of a later version', changed((sealed) => void sealed.writeUInt32LE(2, 4))],
      ['a page of another text, sealed and sound, under this name', (name, sealed) => ['SET', name, foreignLike(sealed)]],
      ['a page that was cut', (name, sealed) => ['SET', name, sealed.subarray(0, sealed.length >> 1)]],
      ['a page that grew', (name, sealed) => ['SET', name, Buffer.concat([sealed, Buffer.alloc(3)])]],
      ['noise of as many bytes', (name, sealed) => ['SET', name, randomBytes(sealed.length)]],
    ])('%s', async (_, write) => {
      await replace(write);
      const answer = await second.ask(question());
      expect(answer).toMatchObject({ tokens: cold.tokens, reusedTokens: 0, store: { hits: 0 } });
      expect(answer.store.damaged).toBeGreaterThan(0);
      expect(answer.outside).toMatchObject({ loadedTokens: 0, failedLoads: 1 });
      // What was not asked for, such as states in the middle, nobody has looked at.
      const warm = await first.ask(question());
      expect(warm).toMatchObject({ tokens: cold.tokens, reusedTokens: WARM_TOKENS });
      expect(warm.store.damaged).toBe(0);
    });
  });

  describe('what is no page is a miss, and a page takes its place:', () => {
    it.each<[string, (name: string, sealed: Buffer) => (string | Buffer)[]]>([
      ['a list', (name, sealed) => ['RPUSH', name, sealed]],
      ['a hash', (name, sealed) => ['HSET', name, 'page', sealed]],
      ['less than a seal', (name, sealed) => ['SET', name, sealed.subarray(0, 3)]],
      ['nothing', (name) => ['SET', name, '']],
    ])('%s', async (_, write) => {
      await replace(write);
      const answer = await second.ask(question());
      expect(answer).toMatchObject({ tokens: cold.tokens, reusedTokens: 0, store: { hits: 0 } });
      expect(await first.ask(question())).toMatchObject({ tokens: cold.tokens, reusedTokens: WARM_TOKENS });
    });
  });

  it('a page that is sound and of another length is not used', async () => {
    await replace((name, sealed) => ['SET', name, Buffer.from(sealPage(keyOf(name), sealed.subarray(SEAL_BYTES + 4)))]);
    const answer = await second.ask(question());
    expect(answer).toMatchObject({ tokens: cold.tokens, reusedTokens: 0, outside: { loadedTokens: 0, failedLoads: 1 } });
    expect(await first.ask(question())).toMatchObject({ tokens: cold.tokens, reusedTokens: WARM_TOKENS });
  });

  it('one damaged page among sound ones leaves the text as it is', async () => {
    for (const one of left.keys()) {
      await replace((name, sealed) => (name === one ? flipped(40)(name, sealed) : ['SET', name, sealed]));
      expect((await second.ask(question())).tokens).toEqual(cold.tokens);
    }
  });

  describe('what others keep there is not even looked at:', () => {
    it.each<[string, Partial<Question>]>([
      ['pages of another model', { fingerprint: 'another model' }],
      ['pages of another scope', { salt: 7 }],
      ['pages of other tokens in a block', { tokensPerBlock: 16 }],
    ])('%s', async (_, more) => {
      await replace((name, sealed) => ['SET', name, sealed]);
      const answer = await second.ask(question(more));
      expect(answer).toMatchObject({
        tokens: cold.tokens,
        reusedTokens: 0,
        store: { hits: 0, damaged: 0 },
        outside: { failedLoads: 0 },
      });
      // A control: what differs is found by who asks for the same.
      expect((await first.ask(question(more))).reusedTokens).toBeGreaterThan(0);
    });

    it('pages of another architecture that answers the same prompt', async () => {
      const llama = await second.ask(question({ modelFile: modelFile('llama-103') }));
      expect(llama).toMatchObject({ reusedTokens: 0, store: { hits: 0, damaged: 0 } });
      expect((await first.ask(question({ modelFile: modelFile('llama-103') }))).tokens).toEqual(llama.tokens);
    });
  });
});
