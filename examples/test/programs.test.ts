import { describe, expect, test } from 'vitest';
import { runProgram } from './run-program.ts';

describe('prefix-reuse', () => {
  test('prints what each group supplies, and that only the rest is computed', async () => {
    const text = await runProgram('prefix-reuse');
    expect(text).toMatch(/first request: 96 tokens, 0 found, 96 to compute/);
    const [, second, continued] = text.trim().split('\n\n');
    expect(second.split('\n').map((line) => line.trim().replace(/ +/g, ' '))).toEqual([
      'second request: 99 tokens, 96 found, 3 to compute',
      'layer 0 key, value required supplies 0 to 96',
      'layer 1 key, value optional supplies 64 to 96',
      'layer 2 ssm_state required supplies 0 to 96',
      'layer 2 replay_x private supplies nothing',
    ]);
    expect(continued).toMatch(/101 tokens, 99 found, 2 to compute/);
  });
});

describe('page-store', () => {
  test('keeps every promise that it does not decline', async () => {
    const text = await runProgram('page-store');
    const [, kept, broken, skipped] = /(\d+) promises kept, (\d+) broken, (\d+) skipped/.exec(text) ?? [];
    expect(Number(kept)).toBeGreaterThanOrEqual(20);
    expect(broken).toBe('0');
    // Only what its flags decline.
    expect(text.match(/\(supports\.\w+ is false\)/g)?.length).toBe(Number(skipped));
  });
});

describe('hand-over', () => {
  test('moves what the other worker lacks of each group, whole, and nothing twice', async () => {
    const [cold, rest, again] = (await runProgram('hand-over')).trim().split('\n\n');
    for (const move of [cold, rest, again]) expect(move).toMatch(/pages as they were computed/);
    expect(moved(cold)).toEqual({ 'full attention': [8, 65536], 'sliding window': [2, 16384], state: [1, 16384] });
    expect(moved(rest)).toEqual({ 'full attention': [2, 16384], 'sliding window': [2, 16384], state: [1, 16384] });
    expect(moved(again)).toEqual({ 'full attention': [0, 0], 'sliding window': [0, 0], state: [0, 0] });
  });
});

/** Pages and bytes that moved, by group. */
function moved(text: string): Record<string, number[]> {
  const lines = text.matchAll(/^ {2}(.+): (\d+) pages lacked, (\d+) moved, (\d+) bytes$/gm);
  return Object.fromEntries([...lines].map(([, group, , pages, bytes]) => [group, [Number(pages), Number(bytes)]]));
}
