import { formatBytes, formatCount } from '@bufferwise/scratch-allocator';
import { FAINT, LEGEND_STEP, legend, PALETTE, QUIET, svgElement, svgPicture, svgText } from '../picture/svg.ts';
import type { Plan } from './make-plan.ts';

const WIDTH = 900;
const LEFT = 150;
const BAR_WIDTH = 560;
const BAR_HEIGHT = 22;
const STEP = 34;

/** A plan as a picture: what a request of each length holds, and how the device's memory is shared out, by group. */
export function planPicture(plan: Plan): string {
  const { explanation, preset } = plan;
  const { groups } = explanation;
  const names = groups.map(({ id, policy, words }) => `group ${id}, ${policy}: ${words}`);
  const title = `${plan.model} (${preset.family}, ${preset.variant}), ${formatBytes(plan.memory)}`;
  const requestsTop = 62 + names.length * LEGEND_STEP + 34;
  const memoryTop = requestsTop + plan.lengths.length * STEP + 50;
  const parts = [
    svgText(24, 34, title, { 'font-size': 18, 'font-weight': 600 }),
    ...legend(24, 54, names),
    ...heading(requestsTop, 'What a request holds by its length, each bar as a share of the longest request'),
    ...requestBars(plan, requestsTop + 12),
    ...heading(memoryTop, `Pools of the device, ${formatBytes(explanation.tiers[0].quota)}`),
    ...poolBars(plan, memoryTop + 12),
  ];
  return svgPicture(WIDTH, memoryTop + 12 + explanation.tiers[0].poolGroups.length * STEP + 16, title, parts);
}

function heading(y: number, text: string): string[] {
  return [svgText(24, y, text, { 'font-weight': 600 })];
}

function requestBars({ explanation }: Plan, top: number): string[] {
  const { requests } = explanation.totals;
  const most = Math.max(1, ...requests.map(({ bytes }) => bytes));
  return requests.flatMap(({ tokens, bytes, numFitting }, index) => {
    const fit = Number.isFinite(numFitting) ? formatCount(numFitting) : 'any';
    const segments = explanation.groups.map(({ id, requests: held }) => ({ group: id, bytes: held[index].bytes }));
    return bar(top + index * STEP, `${formatCount(tokens)} tokens`, segments, most, `${formatBytes(bytes)}, ${fit} fit`);
  });
}

function poolBars({ explanation }: Plan, top: number): string[] {
  const [device] = explanation.tiers;
  return device.poolGroups.flatMap(({ groupIds, slots, slotsBytes, slotBytes }, index) => {
    const label = `${groupIds.length > 1 ? 'groups' : 'group'} ${groupIds.join(', ')}`;
    const words = `${formatBytes(slotsBytes)}: ${formatCount(slots)} × ${formatBytes(slotBytes)}`;
    return bar(top + index * STEP, label, [{ group: groupIds[0], bytes: slotsBytes }], Math.max(1, device.quota), words);
  });
}

/** One row: a label, a bar of segments on a faint one of full length, and what it comes to. */
function bar(
  y: number,
  label: string,
  segments: readonly { readonly group: number; readonly bytes: number }[],
  full: number,
  words: string,
): string[] {
  const textY = y + BAR_HEIGHT / 2 + 5;
  let x = LEFT;
  const drawn = segments.map(({ group, bytes }) => {
    const width = (bytes / full) * BAR_WIDTH;
    const rect = svgElement('rect', { x, y, width, height: BAR_HEIGHT, fill: PALETTE[group % PALETTE.length] });
    x += width;
    return rect;
  });
  return [
    svgText(LEFT - 10, textY, label, { 'text-anchor': 'end' }),
    svgElement('rect', { x: LEFT, y, width: BAR_WIDTH, height: BAR_HEIGHT, fill: FAINT, 'fill-opacity': 0.4 }),
    ...drawn,
    svgText(LEFT + BAR_WIDTH + 10, textY, words, { fill: QUIET, 'font-size': 12 }),
  ];
}
