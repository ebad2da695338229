import type { Rational } from '../rational.ts';
import { bufferColumns } from './buffer-columns.ts';
import type { ConfigExplanation } from './explain.ts';
import type { GroupExplanation } from './group-explanation.ts';
import type { ScratchChunk, ScratchExplanation } from './scratch-explanation.ts';
import { type TextColumn, textTable, wrapText } from './text-table.ts';
import type { TierExplanation } from './tier-explanation.ts';
import { formatBytes, formatCount, formatCounted } from './units.ts';

export interface FormatOptions {
  /** Characters a line may have; fewer than 60 count as 60. Default 100. Single words that are longer run over. */
  readonly width?: number;
}

const MIN_WIDTH = 60;
const INDENT = '  ';
/** Width of the labels before the facts of a group. */
const LABEL_WIDTH = 9;

/**
 * An explanation as text for a person: aligned columns, bytes in KiB and MiB to two decimals, no colour codes, no line break at
 * the end. For exact numbers read the data.
 */
export function formatExplanation(explanation: ConfigExplanation, { width = 100 }: FormatOptions = {}): string {
  const lineWidth = Math.max(MIN_WIDTH, width);
  const sections = [
    summary(explanation, lineWidth),
    ...explanation.groups.map((group) => groupSection(group, lineWidth)),
    requestSection(explanation, lineWidth),
    tierSection(explanation, lineWidth),
  ];
  return sections
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n');
}

function summary({ groups, numBuffers, numLayers, tokensPerBlock, totals }: ConfigExplanation, width: number): string[] {
  const counts = [formatCounted(numLayers, 'layer'), formatCounted(numBuffers, 'buffer'), formatCounted(groups.length, 'group')];
  const size = `${counts.join(', ')}; ${formatCounted(tokensPerBlock, 'token')} a block`;
  const late = `${perToken(totals.bytesPerLateToken)} once every window is full`;
  const hasWindows = groups.some(({ lifecycle }) => lifecycle.kind === 'attention' && lifecycle.windowSize !== null);
  const tokens = `A token takes ${perToken(totals.bytesPerToken)}${hasWindows ? `, ${late}` : ''}.`;
  const fixed = `Windows and recurrent state take at most ${formatBytes(totals.maxFixedBytes)} a request.`;
  return [...wrapText(size, width), ...wrapText(totals.maxFixedBytes > 0 ? `${tokens} ${fixed}` : tokens, width)];
}

function groupSection(group: GroupExplanation, width: number): string[] {
  const facts = [
    ['page', pageFact(group)],
    ['request', requestFact(group)],
    ...(group.scratch === null ? [] : [['scratch', scratchFact(group.scratch)]]),
  ];
  return [
    ...wrapText(`Group ${group.id}, ${group.policy}: ${group.words}`, width),
    ...textTable(bufferColumns(group.buffers), width, INDENT),
    ...facts.flatMap(([label, fact]) => labelled(label, fact, width)),
  ];
}

function pageFact({ pageBytes, bytesPerToken, pools }: GroupExplanation): string {
  const held = pools.map(({ numBuffers, bufferBytes }) => `${formatCount(numBuffers)} × ${formatBytes(bufferBytes)}`);
  const where = held.map((what, pool) => `${what} in pool ${pool}`).join(', ');
  const token = bytesPerToken === null ? '' : `; ${perToken(bytesPerToken)} a token`;
  return `${formatBytes(pageBytes)}: ${where}${token}`;
}

function requestFact({ lifecycle, maxRequestPages, maxRequestBytes }: GroupExplanation): string {
  if (maxRequestPages === null || maxRequestBytes === null) return 'grows with its length';
  const bytes = formatBytes(maxRequestBytes);
  return lifecycle.kind === 'ssm' ? `${bytes} at any length` : `at most ${formatCounted(maxRequestPages, 'page')}, ${bytes}`;
}

function scratchFact({ enabled, maxRewindLen, fraction, chunks }: ScratchExplanation): string {
  const share = fraction.den === 1 ? 'a slot a block' : `${fraction.num}/${fraction.den} of a slot a block`;
  const margin = maxRewindLen === 0 ? '' : `, but for the last ${formatCounted(maxRewindLen, 'token')}`;
  const head = enabled ? `${share}${margin}` : `off; with it, ${share}`;
  return [head, ...chunks.map(chunkWords)].join('; ');
}

function chunkWords({ tokens, slots, pages, bytesSaved }: ScratchChunk): string {
  const step = `${formatCounted(tokens, 'token')} in one step take`;
  if (slots === pages) return `${step} ${formatCounted(pages, 'page')} either way`;
  return `${step} ${formatCounted(slots, 'slot')} instead of ${formatCount(pages)} and save ${formatBytes(bytesSaved)}`;
}

function requestSection({ groups, totals, systemPromptLength }: ConfigExplanation, width: number): string[] {
  if (totals.requests.length === 0) return [];
  const shared = systemPromptLength === 0 ? '' : `, which share their first ${formatCounted(systemPromptLength, 'token')}`;
  const title = `What a request holds by its length in tokens, and how many such requests fit on the device at a time${shared}`;
  const columns: TextColumn[] = [
    { title: 'tokens', align: 'left', cells: [...groups.map(({ id }) => `group ${id}`), 'together', 'fit'] },
    ...totals.requests.map(({ tokens, bytes, numFitting }, index): TextColumn => {
      const ofGroups = groups.map(({ requests }) => formatBytes(requests[index].bytes));
      const fit = numFitting === Infinity ? 'any' : formatCount(numFitting);
      return { title: formatCount(tokens), align: 'right', cells: [...ofGroups, formatBytes(bytes), fit] };
    }),
  ];
  return [...wrapText(title, width), ...textTable(columns, width, INDENT)];
}

function tierSection({ tiers }: ConfigExplanation, width: number): string[] {
  const rows = tiers.flatMap(({ tier, poolGroups }) => poolGroups.map((group) => ({ tier, ...group })));
  const columns: TextColumn[] = [
    { title: 'tier', align: 'left', cells: rows.map(({ tier }) => tier) },
    { title: 'a slot', align: 'right', cells: rows.map(({ slotBytes }) => formatBytes(slotBytes)) },
    { title: 'slots', align: 'right', cells: rows.map(({ slots }) => formatCount(slots)) },
    { title: 'at least', align: 'right', cells: rows.map(({ minSlots }) => formatCount(minSlots)) },
    { title: 'together', align: 'right', cells: rows.map(({ slotsBytes }) => formatBytes(slotsBytes)) },
    { title: 'policy', align: 'left', cells: rows.map(({ policy }) => policy) },
    { title: 'groups', align: 'left', cells: rows.map(({ groupIds }) => groupIds.join(', ')) },
  ];
  return [
    'Slots of each tier',
    ...(rows.length === 0 ? [] : textTable(columns, width, INDENT)),
    ...tiers.flatMap((tier) => labelled(tier.tier, quotaWords(tier), width)),
  ];
}

function quotaWords({ askedQuota, quota, raised, granularity }: TierExplanation): string {
  const asked = formatBytes(askedQuota);
  const steps = `in steps of ${formatBytes(granularity)}`;
  if (raised) return `${asked} asked for, raised to ${formatBytes(quota)} for the slots under "at least"; ${steps}`;
  return quota === askedQuota ? `${asked}, ${steps}` : `${asked} asked for, rounded up to ${formatBytes(quota)}; ${steps}`;
}

/** A label and a text beside it, wrapped within its own column. */
function labelled(label: string, text: string, width: number): string[] {
  const lines = wrapText(text, width - INDENT.length - LABEL_WIDTH);
  return lines.map((line, index) => `${INDENT}${(index === 0 ? label : '').padEnd(LABEL_WIDTH)}${line}`);
}

function perToken({ num, den }: Rational): string {
  return formatBytes(num / den);
}
