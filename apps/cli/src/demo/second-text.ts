import type { KvCacheManager } from '@bufferwise/cache-manager';
import { describeLifecycle } from './report-table.ts';
import type { DemoResult } from './run-requests.ts';
import type { SecondAnswer } from './second-process.ts';

/** What the second process had from the store, group by group, and both times to the first token of the same prompt. */
export function secondText(manager: KvCacheManager, second: SecondAnswer, first: DemoResult): string {
  const { lifecycles } = manager.lifecycles;
  const groups = second.groups.map(({ reusedTokens }, id) => `${describeLifecycle(lifecycles[id])}: ${reusedTokens}`);
  const [ms, firstMs] = [second.firstTokenMs, first.report.timeToFirstTokenMs].map(Math.round);
  const began = first.report.reusedTokens === 0 ? 'with nothing' : `with ${first.report.reusedTokens} tokens from the store, too`;
  return [
    `From the store came ${second.reusedTokens} of ${second.reusedTokens + second.computedTokens} prompt tokens (${groups.join(', ')}).`,
    `First token after ${ms} ms. The first process, which began ${began}, took ${firstMs} ms.`,
  ].join('\n');
}
