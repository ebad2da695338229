import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { buildCommand } from '../support/build-command.ts';
import { startServe } from '../support/served-process.ts';
import { GRANITE, LLAMA } from '../support/test-server.ts';

// A software device on a busy machine takes its time; nothing here is about speed.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

let command: string;
let folder: string;
beforeAll(async () => {
  command = await buildCommand();
  folder = await mkdtemp(join(tmpdir(), 'bufferwise-serve-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const started: ChildProcess[] = [];
afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL');
});

/** The variables of a terminal: where there is no GPU the command starts itself again, with those of a software device. */
function bareEnvironment(): NodeJS.ProcessEnv {
  const { VK_ICD_FILENAMES: _, LD_LIBRARY_PATH: __, ...rest } = process.env;
  return rest;
}

const serve = (args: readonly string[], env = process.env) => startServe(command, args, { env, started });

const ask = (url: string, body: object) =>
  fetch(`${url}/v1/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ prompt: 'a', ignore_eos: true, temperature: 0, ...body }),
  });

/** A stream that has begun, and the whole of it. */
async function streaming(url: string, maxTokens: number): Promise<{ rest: Promise<string> }> {
  const response = await ask(url, { max_tokens: maxTokens, stream: true });
  expect(response.status).toBe(200);
  const reader = response.body?.getReader() as ReadableStreamDefaultReader<Uint8Array>;
  let text = Buffer.from((await reader.read()).value as Uint8Array).toString();
  const rest = (async () => {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return text;
      text += Buffer.from(value).toString();
    }
  })();
  return { rest };
}

describe('bufferwise serve', () => {
  it('ends in order on SIGTERM: who is in gets his answer, others are sent away, and the code is 0', async () => {
    const { url, child, exit, told } = await serve([LLAMA, '--drain-timeout', '5m']);
    const expected = (await (await ask(url, { max_tokens: 200 })).json()).choices[0].text;
    const { rest } = await streaming(url, 200);
    child.kill('SIGTERM');
    await vi.waitFor(async () => {
      const health = await fetch(`${url}/health`);
      expect([health.status, (await health.json()).status]).toEqual([503, 'draining']);
    }, 30_000);
    const refused = await ask(url, { max_tokens: 1 });
    expect(refused.status).toBe(503);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect((await refused.json()).error).toMatchObject({ type: 'server_error', code: 'stopping' });
    const events = (await rest)
      .trimEnd()
      .split('\n\n')
      .map((event) => event.replace(/^data: /, ''));
    expect(events.pop()).toBe('[DONE]');
    expect(events.map((event) => JSON.parse(event).choices[0].text).join('')).toBe(expected);
    expect(await exit).toBe(0);
    expect(told()).toBe('stopping: answers under way may end\n');
    await expect(fetch(url)).rejects.toThrow();
  });

  it('cuts answers off that take longer than they have, and says so', async () => {
    const { url, child, exit, told } = await serve([LLAMA, '--drain-timeout', '200ms']);
    const { rest } = await streaming(url, 1000);
    child.kill('SIGTERM');
    const last = (await rest).trimEnd().split('\n\n').at(-1) as string;
    expect(JSON.parse(last.replace(/^data: /, '')).error).toMatchObject({ code: 'stopping', message: expect.any(String) });
    expect(await exit).toBe(1);
    expect(told()).toContain('1 request was cut off');
  });

  it('ends at once on a second signal', async () => {
    const { url, child, exit } = await serve([LLAMA]);
    const { rest } = await streaming(url, 1000);
    child.kill('SIGTERM');
    await vi.waitFor(async () => expect((await fetch(`${url}/health`)).status).toBe(503), 30_000);
    child.kill('SIGTERM');
    await expect(rest).rejects.toThrow();
    // A shell makes 143 of it.
    expect(await exit).toBe('SIGTERM');
  });

  it('ends with 130 on Ctrl-C', async () => {
    const { child, exit } = await serve([LLAMA], bareEnvironment());
    // As a terminal does it: to everybody in the group.
    process.kill(-(child.pid as number), 'SIGINT');
    expect(await exit).toBe(130);
  });

  it('leaves nothing behind when it is killed', async () => {
    const { url, child, exit } = await serve([LLAMA], bareEnvironment());
    child.kill('SIGKILL');
    expect(await exit).toBe('SIGKILL');
    await vi.waitFor(() => expect(fetch(url)).rejects.toThrow(), { timeout: 30_000, interval: 50 });
  });

  it('finds after a restart what it has stored before', async () => {
    const store = join(folder, 'prefixes');
    const prompt = 'a beginning that is long enough for several blocks, and then some more of it';
    const cached = async () => {
      const { url, child, exit } = await serve([GRANITE, '--store', store, '--name', 'tiny']);
      const answer = await (await ask(url, { prompt, max_tokens: 4, model: 'tiny' })).json();
      const metrics = await (await fetch(`${url}/metrics`)).text();
      child.kill('SIGTERM');
      expect(await exit).toBe(0);
      return { answer, metrics };
    };
    const first = await cached();
    expect(first.answer.usage.prompt_tokens_details.cached_tokens).toBe(0);
    const second = await cached();
    expect(second.answer.usage.prompt_tokens_details.cached_tokens).toBeGreaterThanOrEqual(64);
    expect(second.answer.choices).toEqual(first.answer.choices);
    expect(second.metrics).toMatch(/bufferwise_outside_total\{what="loaded_tokens"\} [1-9]/);
    expect(second.metrics).toMatch(/bufferwise_store\{what="hits"\} [1-9]/);
  });

  it('says in one line that it cannot listen', async () => {
    const { url } = await serve([LLAMA]);
    const second = spawn(process.execPath, [command, 'serve', LLAMA, '--port', new URL(url).port], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    started.push(second);
    let told = '';
    second.stderr.on('data', (bytes) => {
      told += bytes;
    });
    expect((await once(second, 'exit'))[0]).toBe(1);
    expect(told).toMatch(/^bufferwise serve: cannot listen on 127\.0\.0\.1 port \d+: EADDRINUSE; .*\n$/);
  });
});
