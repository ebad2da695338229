import { expect, vi } from 'vitest';
import type { ServedProcess } from './served-process.ts';

/** How long is waited for what other processes do on a busy machine. */
export const WAIT = { timeout: 120_000, interval: 20 };

type Server = Pick<ServedProcess, 'url'>;

/** What else a request says; `key` goes into its header. */
export interface Asked {
  readonly key?: string;
  readonly [field: string]: unknown;
}

/** A prompt of a few blocks that no other has the beginning of: for the smallest models every byte is a token. */
export const promptOf = (name: string) =>
  `${name}: ${'a text that goes on for a while, as texts do, '.repeat(6)}and ends with ${name}`;

export function post({ url }: Server, prompt: string | readonly string[], { key, ...fields }: Asked = {}): Promise<Response> {
  return fetch(`${url}/v1/completions`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      connection: 'close',
      ...(key !== undefined && { authorization: `Bearer ${key}` }),
    },
    body: JSON.stringify({ prompt, max_tokens: 8, temperature: 0, ignore_eos: true, logprobs: 1, ...fields }),
  });
}

/** All answers to a prompt, with their probabilities. */
export async function ask(server: Server, prompt: string, asked: Asked = {}): Promise<unknown[]> {
  const response = await post(server, prompt, asked);
  const body = await response.json();
  expect([response.status, body.error]).toEqual([200, undefined]);
  return body.choices;
}

/**
 * Answers that are to be given again: the same texts, and probabilities that differ by no more than by what else was in the step. A step with
 * several requests adds numbers up in another order.
 */
export function likeThese(choices: unknown[]): unknown[] {
  return JSON.parse(JSON.stringify(choices), (_, value) =>
    typeof value === 'number' && !Number.isInteger(value) ? expect.closeTo(value, 4) : value,
  );
}

/** What a server answers to prompts that it has to read by itself, as nobody is there yet who would: what `ask` is to say, by prompt. */
export async function answersAlone(server: Server, prompts: readonly string[]): Promise<Map<string, unknown[]>> {
  expect((await clusterOf(server)).workers.map(({ role }: { role: string }) => role)).not.toContain('prefill');
  // With a salt of their own they are no help to anybody later.
  const response = await post(server, prompts, { cache_salt: 'alone' });
  const { choices } = await response.json();
  return new Map(prompts.map((prompt, i) => [prompt, likeThese([{ ...choices[i], index: 0 }])]));
}

export async function numTokens({ url }: Server, prompt: string, key: string): Promise<number> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${key}` };
  const response = await fetch(`${url}/tokenize`, { method: 'POST', headers, body: JSON.stringify({ prompt }) });
  return (await response.json()).count;
}

/** The figures of a server, by name and labels. */
export async function figures({ url }: Server, key?: string): Promise<Map<string, number>> {
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

/** How many prompts came to an outcome. */
export async function movesOf(server: Server, outcome: string): Promise<number> {
  return (await figures(server)).get(`prompt_moves_total{outcome="${outcome}"}`) ?? 0;
}

/** Waits until a server has read so many prompts for others. It hears that they have arrived after who answers begins to. */
export async function hasRead(server: Server, count: number): Promise<void> {
  await vi.waitFor(async () => expect((await figures(server)).get('prefill_jobs_total{outcome="complete"}')).toBe(count), WAIT);
}

/** What a server says of the others, and of what is on its way. */
export async function clusterOf({ url }: Server) {
  return (await (await fetch(`${url}/inspect`)).json()).cluster;
}

/** Waits until a server knows as many of each role that take jobs. */
export async function knows(server: Server, roles: Readonly<Record<string, number>>): Promise<void> {
  await vi.waitFor(async () => {
    const { workers } = await clusterOf(server);
    const open = workers.filter(({ draining }: { draining: boolean }) => !draining);
    const counts = Object.keys(roles).map((role) => [role, open.filter((each: { role: string }) => each.role === role).length]);
    expect(Object.fromEntries(counts)).toEqual(roles);
  }, WAIT);
}

/** Waits until nothing is on its way to or from a server, and no request has a page of it. */
export async function holdsNothing(server: Server): Promise<void> {
  await vi.waitFor(async () => {
    const [{ moves, jobs }, counts] = await Promise.all([clusterOf(server), figures(server)]);
    const slots = [...counts].filter(([name]) => /^pool_slots\{.*state="locked"/.test(name));
    expect(slots).not.toEqual([]);
    expect({
      moves,
      jobs,
      requests: counts.get('cache_open_requests'),
      heldSlots: slots.reduce((sum, [, value]) => sum + value, 0),
    }).toEqual({ moves: { incoming: 0, holding: 0, outgoing: 0 }, jobs: 0, requests: 0, heldSlots: 0 });
  }, WAIT);
}

/** Ends a server. @returns its exit code, or the signal that ended it */
export function end({ child, exit }: ServedProcess, signal: NodeJS.Signals = 'SIGTERM'): Promise<number | string> {
  child.kill(signal);
  return exit;
}
