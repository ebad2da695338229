import type { Colors } from '../terminal/terminal.ts';
import { isSameText } from './report-table.ts';
import type { DemoResult } from './run-requests.ts';
import type { SecondAnswer } from './second-process.ts';

export interface Verdict {
  readonly passed: boolean;
  /** Lines for people. */
  readonly text: string;
}

/** What all that is judged was asked. */
export interface DemoFigures {
  readonly withReuse: readonly DemoResult[];
  readonly withoutReuse: readonly DemoResult[];
  /** To the first prompt. */
  readonly second: SecondAnswer;
  /** Tokens of the beginning that all prompts share. */
  readonly sharedTokens: number;
  readonly tokensPerBlock: number;
}

/** What the counted work says. Nothing is judged by times. */
export function judge({ withReuse, withoutReuse, second, sharedTokens, tokensPerBlock }: DemoFigures, colors: Colors): Verdict {
  const claim = (holds: boolean, good: string, bad: string) => ({ holds, line: holds ? colors.green(good) : colors.red(bad) });
  const { computedTokens, promptTokens } = withReuse[1].report;
  const rest = promptTokens - sharedTokens;
  const differing = withReuse.filter((result, i) => !isSameText(result, withoutReuse[i]));
  const sum = (results: readonly DemoResult[]) => results.reduce((total, { report }) => total + report.computedTokens, 0);
  // What leaves a process are whole blocks.
  const sharedBlocksTokens = sharedTokens - (sharedTokens % tokensPerBlock);
  const claims = [
    claim(
      computedTokens === rest,
      `Request B put ${computedTokens} of its ${promptTokens} prompt tokens through the model: exactly those after the shared beginning.`,
      `Request B put ${computedTokens} tokens through the model, but only ${rest} come after the shared beginning.`,
    ),
    claim(
      differing.length === 0,
      'Every answer is the same, token by token, with reuse and without.',
      `Answers that differ with reuse: ${differing.map(({ name }) => name).join(', ')}.`,
    ),
    claim(
      second.reusedTokens >= sharedBlocksTokens,
      `The second process began with ${second.reusedTokens} tokens that the first one had left in the store, and computed ${second.computedTokens}.`,
      `The second process found ${second.reusedTokens} tokens in the store; the shared beginning has ${sharedBlocksTokens} in whole blocks.`,
    ),
    claim(
      isSameText(second, withReuse[0]),
      'It answered the same, token by token.',
      'The second process answered request A with another text.',
    ),
  ];
  const work = `Prompt tokens computed in all: ${sum(withReuse)} with reuse, ${sum(withoutReuse)} without.`;
  const [b, ...others] = claims.map(({ line }) => line);
  return { passed: claims.every(({ holds }) => holds), text: [b, work, ...others].join('\n') };
}
