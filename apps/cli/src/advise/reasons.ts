import type { ReusePolicy } from '@bufferwise/core-policy';
import { formatBytes, formatCount } from '@bufferwise/scratch-allocator';
import { type BufferClass, byLifecycle } from './buffer-classes.ts';
import type { ChoiceFigures } from './trials.ts';

/** Why the classes of each lifecycle get what they get, one sentence a lifecycle: measured with the rest required. */
export function reasonsOf(
  classes: readonly BufferClass[],
  choices: readonly ChoiceFigures[],
  best: ChoiceFigures,
  promptTokens: number,
): string[] {
  const [whole] = choices;
  return [...byLifecycle(classes)].map(([lifecycle, members]) => {
    const ofLifecycle = choices.filter((each) => each.lifecycle === lifecycle);
    const chosen = ofLifecycle.find(({ policies }) => members.every(({ name }) => policies[name] === best.policies[name]));
    return chosen === undefined
      ? stays(lifecycle, members, ofLifecycle, whole)
      : `${titled(chosen.name)}: ${difference(chosen, whole, promptTokens)}.`;
  });
}

/** What it would cost not to require a lifecycle. */
function stays(
  lifecycle: string,
  members: readonly BufferClass[],
  choices: readonly ChoiceFigures[],
  whole: ChoiceFigures,
): string {
  const ofAll = (policy: ReusePolicy) => choices.find(({ policies }) => members.every(({ name }) => policies[name] === policy));
  const costs = (['optional', 'private'] as const).flatMap((policy) => {
    const figures = ofAll(policy);
    return figures === undefined ? [] : [`with ${policy} ${tokensWords(figures.computedTokens - whole.computedTokens)}`];
  });
  return `${titled(lifecycle)} required: the model computes ${costs.join(', ')}.`;
}

function tokensWords(more: number): string {
  if (more === 0) return 'as much';
  return `${formatCount(Math.abs(more))} tokens ${more > 0 ? 'more' : 'less'}`;
}

function difference(chosen: ChoiceFigures, whole: ChoiceFigures, promptTokens: number): string {
  const fewer = whole.computedTokens - chosen.computedTokens;
  const share = `${((100 * Math.abs(fewer)) / promptTokens).toFixed(1)} % of all prompts`;
  const computed =
    fewer === 0
      ? 'the model computes as much'
      : `the model computes ${formatCount(Math.abs(fewer))} tokens ${fewer > 0 ? 'less' : 'more'} (${share})`;
  const [before, after] = [whole, chosen].map((each) => formatBytes(Math.round(each.sharedBytesPerToken)));
  return before === after ? computed : `${computed}, and a token leaves ${after} for others instead of ${before}`;
}

function titled(words: string): string {
  return `${words[0].toUpperCase()}${words.slice(1)}`;
}
