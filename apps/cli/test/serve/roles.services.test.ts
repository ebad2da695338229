import type { ChildProcess } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hasServer } from '@bufferwise-internal/services';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { ask, end, figures, knows, movesOf, numTokens, post, promptOf, WAIT } from '../support/served-client.ts';
import { SECRETS, ServedCluster, startAlone } from '../support/served-cluster.ts';
import type { ServedProcess } from '../support/served-process.ts';

// A software device on a busy machine takes its time; nothing here is about speed.
vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 });

describe.runIf(hasServer('nats'))('bufferwise serve --role', () => {
  /** Answers everything by itself. */
  let alone: ServedProcess;
  const started: ChildProcess[] = [];
  /** Of a test to itself: others on the same NATS would work with it. */
  let cluster: ServedCluster;
  beforeAll(async () => {
    alone = await startAlone(started);
  });
  afterAll(() => {
    for (const child of started) child.kill('SIGKILL');
  });
  beforeEach(async () => {
    cluster = await ServedCluster.start();
  });
  afterEach(() => cluster.stop());

  it('answers as one process does, moves what is lacked and nothing else, and keeps keys apart', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'bufferwise-roles-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const keys = join(folder, 'keys.txt');
    await writeFile(keys, 'first-key\nsecond-key\n');
    const [reader, answerer] = await Promise.all([cluster.prefill(), cluster.decode('--api-keys', keys)]);
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
    expect(reader.told() + answerer.told()).not.toMatch(SECRETS);
  });

  it('does both for each other where each has both roles', async () => {
    const both = ['--role', 'both', '--prefill-from', '16', '--prefill-timeout', '5m'];
    const [one, two] = await Promise.all([cluster.serve(both), cluster.serve(both)]);
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
});
