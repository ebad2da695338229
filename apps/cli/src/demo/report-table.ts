import type { KvCacheManager } from '@bufferwise/cache-manager';
import type { Lifecycle } from '@bufferwise/core-policy';
import Table from 'cli-table3';
import type { Colors } from '../terminal/terminal.ts';
import type { DemoResult } from './run-requests.ts';
import type { SecondAnswer } from './second-process.ts';

/** The demo's one table: what each request was spared, group by group, and what it cost, with reuse and without. */
export function reportTable(
  manager: KvCacheManager,
  withReuse: readonly DemoResult[],
  withoutReuse: readonly DemoResult[],
  colors: Colors,
): string {
  const groups = Array.from({ length: manager.lifecycles.size }, (_, id) => describeLifecycle(manager.lifecycles.lifecycles[id]));
  const table = new Table({
    head: [
      'request',
      'prompt',
      ...groups.map((group) => `reused\n${group}`),
      'computed',
      'first token',
      'pages',
      'memory',
      'same text',
    ],
    colAligns: ['left', ...new Array(groups.length + 5).fill('right'), 'left'],
    style: { head: colors.isColorSupported ? ['cyan'] : [], border: colors.isColorSupported ? ['gray'] : [], compact: true },
  });
  const addRow = (result: DemoResult, how: string, same: string) => {
    const { report } = result;
    table.push([
      `${result.name} ${how}`,
      report.promptTokens,
      ...report.groups.map(({ reusedTokens }) => reusedTokens),
      report.computedTokens,
      `${Math.round(report.timeToFirstTokenMs)} ms`,
      result.pages,
      `${(result.bytes / 2 ** 20).toFixed(1)} MiB`,
      same,
    ]);
  };
  withReuse.forEach((result, i) => {
    addRow(result, 'with reuse', isSameText(result, withoutReuse[i]) ? colors.green('yes') : colors.red('NO'));
  });
  for (const result of withoutReuse) addRow(result, 'without', '');
  return table.toString();
}

/** Whether two runs of a request answered the same tokens. */
export function isSameText(a: Pick<SecondAnswer, 'tokens'>, b: Pick<SecondAnswer, 'tokens'>): boolean {
  return a.tokens.length === b.tokens.length && a.tokens.every((token, i) => token === b.tokens[i]);
}

/** In as few words as a head of a column has room for. */
export function describeLifecycle(lifecycle: Lifecycle): string {
  if (lifecycle.kind === 'ssm') return 'state';
  if (lifecycle.windowSize === null) return 'full attention';
  return `window ${lifecycle.windowSize}`;
}
