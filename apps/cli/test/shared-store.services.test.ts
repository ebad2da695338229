import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { hasServer, RedisCluster } from '@bufferwise-internal/services';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { buildCommand } from './support/build-command.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 900_000 });

const GRANITE = fileURLToPath(new URL('../../../internal/test-kit/oracle-models/granitehybrid-101.gguf', import.meta.url));
const PROMPT_TOKENS = 70;

describe.runIf(hasServer('redis'))('bufferwise generate --store redis+cluster://…', () => {
  let cluster: RedisCluster;
  let command: string;
  let folder: string | undefined;
  beforeAll(async () => {
    command = await buildCommand();
    folder = await mkdtemp(join(tmpdir(), 'bufferwise-shared-store-'));
    cluster = await RedisCluster.start();
  });
  afterAll(async () => {
    await cluster?.stop();
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  });

  it('lets a process begin with what another one computed, and answers the same', async () => {
    const prompts = join(folder as string, 'prompts.jsonl');
    await writeFile(prompts, JSON.stringify({ ids: Array.from({ length: PROMPT_TOKENS }, (_, i) => (i * 7) % 90) }));
    const address = `redis+cluster://${cluster.nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}?prefix=shared:&ttl=3600`;
    const ask = () =>
      new Promise<string[]>((resolve, reject) => {
        const args = [
          'generate',
          '--model',
          GRANITE,
          '--prompts',
          prompts,
          '--max-new-tokens',
          '5',
          '--json',
          '--store',
          address,
        ];
        execFile(process.execPath, [command, ...args, '--store-near', '4MiB'], (error, stdout, stderr) =>
          error === null ? resolve([stdout, stderr]) : reject(error),
        );
      });
    const [first, second] = [await ask(), await ask()].map(([stdout, stderr]) => {
      expect(stderr).toBe('');
      return JSON.parse(stdout);
    });
    expect(first.reusedTokens).toBe(0);
    expect(second).toMatchObject({
      tokens: first.tokens,
      text: first.text,
      reusedTokens: 64,
      computedTokens: PROMPT_TOKENS - 64,
    });
  });
});
