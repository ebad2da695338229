import { expect, test } from 'vitest';
import { ANSWER, NUM_USES, PROMPT_BODY, PROMPT_END, pageUse } from './page-use.ts';
import { ReuseOdds } from './reuse-odds.ts';

const body = pageUse(PROMPT_BODY, 100);
const answer = pageUse(ANSWER, 100);

function learned(odds: ReuseOdds): Float64Array {
  const out = new Float64Array(NUM_USES);
  odds.logOdds((odds.reused + 1) / (odds.seen + 10), out);
  return out;
}

test('before anything was seen all uses are alike', () => {
  expect(new Set(learned(new ReuseOdds()))).toEqual(new Set([0]));
});

test('a use that comes back twice as often as the average has odds of one doubling', () => {
  const odds = new ReuseOdds();
  for (let i = 0; i < 20_000; i++) {
    odds.sawLetGo(body);
    odds.sawLetGo(answer);
    if (i % 2 === 0) odds.sawReuse(body);
  }
  expect(learned(odds)[body]).toBeCloseTo(1, 1);
  expect(learned(odds)[answer]).toBeLessThan(-4);
});

test('a few pages do not tip the scales', () => {
  const odds = new ReuseOdds();
  for (let i = 0; i < 5; i++) odds.sawLetGo(answer);
  for (let i = 0; i < 1000; i++) {
    odds.sawLetGo(body);
    if (i % 4 === 0) odds.sawReuse(body);
  }
  expect(Math.abs(learned(odds)[answer])).toBeLessThan(0.2);
});

test('what a part and a length were good for apart is put together for a pair never seen', () => {
  const odds = new ReuseOdds();
  for (let i = 0; i < 4000; i++) {
    odds.sawLetGo(pageUse(PROMPT_BODY, 0));
    odds.sawLetGo(pageUse(PROMPT_END, 5000));
    odds.sawReuse(pageUse(PROMPT_BODY, 0));
  }
  const out = learned(odds);
  expect(out[pageUse(PROMPT_BODY, 5000)]).toBeLessThan(out[pageUse(PROMPT_BODY, 0)]);
  expect(out[pageUse(PROMPT_BODY, 5000)]).toBeGreaterThan(out[pageUse(PROMPT_END, 5000)] - 1e-9);
});

test('what is long ago fades: habits that change are learned anew', () => {
  const odds = new ReuseOdds();
  const see = (comesBack: number, count: number) => {
    for (let i = 0; i < count; i++) {
      odds.sawLetGo(body);
      odds.sawLetGo(answer);
      odds.sawReuse(comesBack);
    }
  };
  see(body, 60_000);
  see(answer, 120_000);
  const out = learned(odds);
  expect(out[answer]).toBeGreaterThan(out[body]);
});
