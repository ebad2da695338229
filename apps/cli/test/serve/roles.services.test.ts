import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hasServer } from '@bufferwise-internal/services';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  answersAlone,
  ask,
  end,
  figures,
  hasRead,
  knows,
  likeThese,
  movesOf,
  numTokens,
  post,
  promptOf,
  WAIT,
} from '../support/served-client.ts';
import { SECRETS, ServedCluster } from '../support/served-cluster.ts';
import { GRANITE, LLAMA } from '../support/test-server.ts';

// A software device on a busy machine takes its time; nothing here is about speed.
vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 });

describe.runIf(hasServer('nats'))('bufferwise serve --role', () => {
  /** Of a test to itself: others on the same NATS would work with it. */
  async function newCluster(model: string): Promise<ServedCluster> {
    const cluster = await ServedCluster.start({ model });
    onTestFinished(() => cluster.stop());
    return cluster;
  }

  it('answers as one process does, moves what is lacked and nothing else, and keeps keys apart', async () => {
    const cluster = await newCluster(GRANITE);
    const folder = await mkdtemp(join(tmpdir(), 'bufferwise-roles-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const keys = join(folder, 'keys.txt');
    await writeFile(keys, 'first-key\nsecond-key\nlonely-key\n');
    const answerer = await cluster.decode('--api-keys', keys);
    const of = (key: string) => ({ key });
    const prompt = promptOf('a first one');
    const other = promptOf('another one');
    const several = { n: 3, temperature: 1, seed: 11, max_tokens: 5 };
    // By itself, while nobody else is there; other keys find nothing of it.
    const [expected, expectedOther] = [
      likeThese(await ask(answerer, prompt, of('lonely-key'))),
      likeThese(await ask(answerer, other, { ...several, ...of('lonely-key') })),
    ];
    const reader = await cluster.prefill();
    await vi.waitFor(
      async () => expect((await figures(answerer, 'first-key')).get('cluster_workers{role="prefill"}')).toBe(1),
      WAIT,
    );
    expect(await ask(answerer, prompt, of('first-key'))).toEqual(expected);
    await hasRead(reader, 1);
    const afterFirst = await figures(answerer, 'first-key');
    const groups = [...afterFirst.keys()].filter((name) => name.startsWith('moved_bytes_total{direction="in"'));
    expect(groups).toHaveLength(2);
    for (const group of groups) {
      expect(afterFirst.get(group)).toBeGreaterThan(0);
      expect(afterFirst.get(group)).toBe(afterFirst.get(group.replace('moved', 'lacked')));
      expect((await figures(reader)).get(group.replace('"in"', '"out"'))).toBe(afterFirst.get(group));
    }
    // What is here is not asked for again; several answers come of one reading, drawn or not.
    expect(await ask(answerer, prompt, of('first-key'))).toEqual(expected);
    expect(await ask(answerer, other, { ...several, ...of('first-key') })).toEqual(expectedOther);
    // Too short to go anywhere.
    await ask(answerer, 'short', of('first-key'));
    expect((await figures(answerer, 'first-key')).get('prompt_moves_total{outcome="moved"}')).toBe(2);
    // The other key finds nothing of it, here or there.
    await hasRead(reader, 2);
    const readBefore = (await figures(reader)).get('prefill_tokens_total{from="model"}') as number;
    expect(await ask(answerer, prompt, of('second-key'))).toEqual(expected);
    await hasRead(reader, 3);
    expect((await figures(reader)).get('prefill_tokens_total{from="model"}')).toBe(
      readBefore + (await numTokens(answerer, prompt, 'first-key')) - 1,
    );
    expect((await figures(reader)).get('prefill_tokens_total{from="cache"}')).toBe(0);
    expect((await post(reader, prompt)).status).toBe(404);
    expect(await Promise.all([end(reader), end(answerer)])).toEqual([0, 0]);
    expect(reader.told() + answerer.told()).not.toMatch(SECRETS);
  });

  it('does both for each other where each has both roles', async () => {
    const cluster = await newCluster(LLAMA);
    const both = ['--role', 'both', '--prefill-from', '16', '--prefill-timeout', '5m'];
    const prompts = [promptOf('x'), promptOf('y'), promptOf('z'), promptOf('w')];
    const one = await cluster.serve(both);
    const expected = await answersAlone(one, prompts);
    const two = await cluster.serve(both);
    await Promise.all([knows(one, { both: 2 }), knows(two, { both: 2 })]);
    const answers = await Promise.all(prompts.map((prompt, i) => ask(i % 2 === 0 ? one : two, prompt)));
    for (const [i, prompt] of prompts.entries()) expect(answers[i]).toEqual(expected.get(prompt));
    for (const each of [one, two]) {
      expect(await movesOf(each, 'moved')).toBe(2);
      await hasRead(each, 2);
    }
    expect(await Promise.all([end(one), end(two)])).toEqual([0, 0]);
  });
});
