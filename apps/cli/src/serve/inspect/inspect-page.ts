import type { CacheStatistics, ManagerSnapshot } from '@bufferwise/cache-manager';
import { formatBytes, formatCount } from '@bufferwise/scratch-allocator';
import { escaped } from '../../picture/svg.ts';

/** What is shown of `GET /inspect`. */
export interface Inspection {
  readonly model: string;
  /** Requests that are in. */
  readonly requests: number;
  /** Answers, by what they are about. */
  readonly answers: Readonly<Record<string, number>>;
  readonly statistics: CacheStatistics;
  readonly cache: ManagerSnapshot;
}

/** States of a slot, what they mean to a person, and the colour that they have in light and in dark. */
const STATES = [
  { state: 'locked', means: 'in use', color: '#0072b2' },
  { state: 'held', means: 'of requests that wait', color: '#56b4e9' },
  { state: 'scratch', means: 'lent to a step', color: '#cc79a7' },
  { state: 'droppable', means: 'kept for whoever comes', color: '#e69f00' },
  { state: 'free', means: 'free', color: '#9994' },
] as const;

const STYLE = `
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 0.5rem 0 1.5rem; }
th, td { padding: 0.15rem 0.9rem 0.15rem 0; text-align: left; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
thead { border-bottom: 1px solid #9998; }
.bar { display: flex; height: 1rem; border-radius: 3px; overflow: hidden; margin: 0.25rem 0; }
i { display: inline-block; width: 0.8em; height: 0.8em; border-radius: 2px; }
`;

/** One self-contained page: no script, and nothing that is loaded from anywhere. */
export function inspectPage({ model, requests, answers, statistics, cache }: Inspection): string {
  const { hitTokens, promptTokens, hitRate } = statistics.requests;
  const said = Object.entries(answers).map(([name, count]) => `${formatCount(count)} ${name}`);
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escaped(model)}: what its cache holds</title>
<style>${STYLE}</style></head>
<body>
<h1>${escaped(model)}</h1>
<p>${formatCount(requests)} requests are in; answers: ${escaped(said.join(', '))}. Of ${formatCount(promptTokens)} prompt tokens
${formatCount(hitTokens)} were in the cache, ${(100 * hitRate).toFixed(1)} %; ${formatCount(statistics.blocks)} blocks are kept.</p>
<h2>Memory</h2>
${legend()}
${[{ tier: 'device', poolGroups: cache.poolGroups }, ...cache.colderTiers].map(tierPart).join('\n')}
<h2>Groups</h2>
${table(
  ['group', 'policy', 'kind', 'window'],
  ['pages', 'evicted', 'lost'],
  cache.groups.map((group) => groupRow(group, statistics)),
)}
<h2>Requests in the cache</h2>
${
  cache.requests.length === 0
    ? '<p>None.</p>'
    : table(['request', 'status'], ['committed', 'history', 'room', 'beams'], cache.requests.map(requestRow))
}
</body>
</html>
`;
}

function legend(): string {
  return `<p>${STATES.map(({ means, color }) => `<i style="background:${color}"></i> ${means}`).join(' · ')}</p>`;
}

function tierPart({ tier, poolGroups }: { tier: string; poolGroups: ManagerSnapshot['poolGroups'] }): string {
  const parts = poolGroups.map(({ slotBytes, numSlots, numFree, slots }, index) => {
    const shares = STATES.map(({ state, color }) => {
      const count = slots.reduce((sum, slot) => sum + Number(slot.state === state), 0);
      return count === 0 ? '' : `<span style="flex:${count};background:${color}"></span>`;
    });
    const label = `${tier}, pool group ${index}: ${formatCount(numSlots - numFree)} of ${formatCount(numSlots)} slots of ${formatBytes(slotBytes)}`;
    return `<div>${label}<div class="bar" aria-hidden="true">${shares.join('')}</div></div>`;
  });
  return parts.join('\n');
}

type Row = readonly (string | number)[];

function groupRow({ groupId, policy, kind, windowSize }: ManagerSnapshot['groups'][number], { groups }: CacheStatistics): Row {
  const { pages, evictedPages, lostPages } = groups[groupId];
  return [String(groupId), policy, kind, windowSize === null ? '' : `${windowSize} tokens`, pages, evictedPages, lostPages];
}

function requestRow(request: ManagerSnapshot['requests'][number]): Row {
  const { key, status, numCommittedTokens, historyLength, capacity, beamWidth } = request;
  return [String(key), status, numCommittedTokens, historyLength, capacity, beamWidth];
}

/** Numbers are counts, and stand to the right. */
function table(words: readonly string[], counts: readonly string[], rows: readonly Row[]): string {
  const head = [...words.map((each) => `<th>${each}</th>`), ...counts.map((each) => `<th class="n">${each}</th>`)];
  const lines = rows.map((row) => {
    const cells = row.map((each) =>
      typeof each === 'number' ? `<td class="n">${formatCount(each)}</td>` : `<td>${escaped(each)}</td>`,
    );
    return `<tr>${cells.join('')}</tr>`;
  });
  return `<table><thead><tr>${head.join('')}</tr></thead><tbody>\n${lines.join('\n')}\n</tbody></table>`;
}
