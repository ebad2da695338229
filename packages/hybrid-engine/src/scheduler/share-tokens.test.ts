import { expect, test } from 'vitest';
import { type Demand, shareTokens } from './share-tokens.ts';

const decode = (): Demand => ({ decoding: true, nextTokens: (most) => Math.min(1, most) });
const prompt = (length: number): Demand => ({ decoding: false, nextTokens: (most) => Math.min(length, most) });
/** Takes all of its beams or nothing. */
const beams = (width: number): Demand => ({ decoding: true, nextTokens: (most) => (most < width ? 0 : width) });

test.each<[string, Demand[], number, number[]]>([
  ['everybody gets what they want when there is room', [prompt(5), decode(), prompt(3)], 16, [5, 1, 3]],
  ['those that wait for one token go before prompts', [prompt(20), decode(), decode()], 8, [6, 1, 1]],
  ['of prompts the first is served first', [prompt(20), prompt(20)], 24, [20, 4]],
  ['those that wait for one token wait in their order, too', [decode(), decode(), decode()], 2, [1, 1, 0]],
  ['who takes all or nothing leaves room for others', [beams(4), prompt(9)], 3, [0, 3]],
  ['nobody gets anything of an empty list', [], 3, []],
])('%s', (_, demands, maxTokens, shares) => {
  expect(shareTokens(demands, maxTokens)).toEqual(shares);
});
