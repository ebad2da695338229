import { expect, test } from 'vitest';
import { runProgram } from './run-program.ts';

test('two-chats reads the common beginning once, and goes on in a chat from its own last words', async () => {
  const chats = (await runProgram('two-chats')).trim().split('\n\n');
  const counts = chats.map((chat) => {
    const [, prompt, reused, computed] = (/prompt of (\d+) tokens: (\d+) reused, (\d+) computed/.exec(chat) ?? []).map(Number);
    expect(reused + computed).toBe(prompt);
    return { prompt, reused, computed };
  });
  expect(chats.map((chat) => chat.slice(0, chat.indexOf(':')))).toEqual(['Chat A', 'Chat B', 'Chat A']);
  const [first, second, third] = counts;
  expect(first.reused).toBe(0);
  // All of what both have in common, to the token.
  expect(second.computed).toBeLessThan(10);
  expect(second.reused).toBeGreaterThan(first.prompt - 10);
  expect(third.reused).toBeGreaterThanOrEqual(first.prompt);
  expect(third.computed).toBeLessThan(10);
  const groups = [...chats[1].matchAll(/^ {2}(.+?) +begins with (\d+) tokens$/gm)].map(([, group, tokens]) => [
    group,
    Number(tokens),
  ]);
  // Less than the window has been said, so all groups begin alike.
  expect(Object.fromEntries(groups)).toEqual({
    'recurrent state': second.reused,
    'sliding window': second.reused,
    'full attention': second.reused,
  });
});
