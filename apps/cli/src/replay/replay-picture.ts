import { formatCount } from '@bufferwise/scratch-allocator';
import { FAINT, LEGEND_STEP, legend, PALETTE, QUIET, svgElement, svgPicture, svgText } from '../picture/svg.ts';
import type { ReplayResult } from './replay-result.ts';
import { figuresOf, percent } from './replay-text.ts';

const WIDTH = 900;
const LEFT = 64;
const PLOT_WIDTH = 800;
const PLOT_HEIGHT = 220;
const QUARTERS = [0, 0.25, 0.5, 0.75, 1];

/** Hit rates over the requests of a trace, one plot a setting, one below the other. */
export function replayPicture(results: readonly ReplayResult[], trace: string): string {
  const title = `Hit rates, ${trace}`;
  let y = 60;
  const plots = results.flatMap((result) => {
    const parts = plot(result, y);
    y += plotHeight(result);
    return parts;
  });
  return svgPicture(WIDTH, y, title, [svgText(24, 34, title, { 'font-size': 18, 'font-weight': 600 }), ...plots]);
}

/** A page with the picture and the figures, complete in one file. */
export function replayPage(results: readonly ReplayResult[], trace: string): string {
  const cell = (tag: 'th' | 'td', text: string) => `<${tag}>${escapedHtml(text)}</${tag}>`;
  const rows = figuresOf(results).map(
    ({ name, of }) => `<tr>${cell('th', name)}${results.map((result) => cell('td', of(result))).join('')}</tr>`,
  );
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>${escapedHtml(`Replay of ${trace}`)}</title>
<style>body{font-family:system-ui,sans-serif;margin:2rem;max-width:60rem}svg{max-width:100%;height:auto}
table{border-collapse:collapse}th,td{padding:.25rem .75rem;border-bottom:1px solid #ddd}th{text-align:left}td{text-align:right}</style>
${replayPicture(results, trace)}<table>
<tr><th></th>${results.map(({ label }) => cell('th', label)).join('')}</tr>
${rows.join('\n')}
</table>
</html>
`;
}

function namesOf({ groups, hitRate }: ReplayResult): string[] {
  const whole = `tokens of prompts: ${percent(hitRate)}`;
  return [
    whole,
    ...groups.map(
      ({ groupId, kind, policy, hitRate: rate }) => `group ${groupId}, ${kind}, ${policy}: ${percent(rate)} of pages`,
    ),
  ];
}

function plotHeight(result: ReplayResult): number {
  return 20 + PLOT_HEIGHT + 40 + namesOf(result).length * LEGEND_STEP + 24;
}

function plot(result: ReplayResult, top: number): string[] {
  const { samples, groups, label } = result;
  const last = samples.at(-1)?.requests ?? 1;
  const bottom = top + 20 + PLOT_HEIGHT;
  const toX = (requests: number) => LEFT + (requests / last) * PLOT_WIDTH;
  const toY = (rate: number) => bottom - rate * PLOT_HEIGHT;
  const line = (rates: readonly (number | null)[], series: number, dashes = 'none') => {
    const points = rates.flatMap((rate, i) =>
      rate === null ? [] : [`${toX(samples[i].requests).toFixed(1)},${toY(rate).toFixed(1)}`],
    );
    return svgElement('polyline', {
      points: points.join(' '),
      fill: 'none',
      stroke: PALETTE[series % PALETTE.length],
      'stroke-width': 2,
      'stroke-dasharray': dashes,
    });
  };
  return [
    svgText(24, top, label, { 'font-weight': 600 }),
    ...QUARTERS.flatMap((rate) => [
      svgElement('line', { x1: LEFT, x2: LEFT + PLOT_WIDTH, y1: toY(rate), y2: toY(rate), stroke: FAINT }),
      svgText(LEFT - 8, toY(rate) + 4, `${100 * rate} %`, { 'text-anchor': 'end', fill: QUIET, 'font-size': 12 }),
    ]),
    ...QUARTERS.map((part) => {
      const anchor = part === 1 ? 'end' : part === 0 ? 'start' : 'middle';
      const words = `${formatCount(Math.round(part * last))}${part === 1 ? ' requests' : ''}`;
      return svgText(LEFT + part * PLOT_WIDTH, bottom + 18, words, { 'text-anchor': anchor, fill: QUIET, 'font-size': 12 });
    }),
    ...groups.map(({ groupId }) =>
      line(
        samples.map(({ hitRates }) => hitRates[groupId]),
        groupId + 1,
      ),
    ),
    // On top and with gaps: often it runs along that of full attention.
    line(
      samples.map(({ hitTokens, promptTokens }) => (promptTokens === 0 ? null : hitTokens / promptTokens)),
      0,
      '6 5',
    ),
    ...legend(LEFT, bottom + 36, namesOf(result)),
  ];
}

function escapedHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
