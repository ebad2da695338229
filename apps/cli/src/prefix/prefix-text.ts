import type { InspectedPrefix, PrefixInfo } from '@bufferwise/adapter-connectors/prefix-file';
import { keyToHex } from '@bufferwise/cache-manager/outside';
import { formatBytes, formatCount, textTable } from '@bufferwise/scratch-allocator';
import { describeLifecycle } from '../demo/report-table.ts';
import type { Terminal } from '../terminal/terminal.ts';

/** What a person wants to know of a prefix file. */
export function prefixText(info: InspectedPrefix, { columns }: Pick<Terminal, 'columns'>): string {
  const { tokens, tokensPerBlock, fileBytes, numPages, pageBytes, groups } = info;
  const facts: [string, string][] = [
    ['model', info.modelName ?? 'without a name'],
    ['fingerprint', info.modelFingerprint],
    ['tokens', `${formatCount(tokens.length)}, in blocks of ${tokensPerBlock}`],
    ['scope', scopeWords(info)],
    [
      'pages',
      `${formatCount(numPages)}, ${formatBytes(pageBytes)}${info.exact ? '' : ', inexact'}${info.compressed ? ', compressed' : ''}`,
    ],
    ['file', fileBytes === null ? 'not verified' : `${formatBytes(fileBytes)}, every page is whole`],
  ];
  const width = Math.max(...facts.map(([name]) => name.length));
  const table = textTable(
    [
      { title: 'group', cells: groups.map(({ lifecycle }) => describeLifecycle(lifecycle)), align: 'left' },
      { title: 'policy', cells: groups.map(({ lifecycle }) => lifecycle.policy), align: 'left' },
      { title: 'layers', cells: groups.map(({ layerIds }) => formatCount(layerIds.length)), align: 'right' },
      { title: 'pages', cells: groups.map((group) => formatCount(group.numPages)), align: 'right' },
      { title: 'a page', cells: groups.map((group) => formatBytes(group.pageBytes)), align: 'right' },
      { title: 'numbers', cells: groups.map(({ form }) => (form === null ? 'as they were' : '8 bits')), align: 'left' },
    ],
    columns,
  );
  return `${[...facts.map(([name, words]) => `${name.padEnd(width)}  ${words}`), '', ...table].join('\n')}\n`;
}

/** The same as plain data. */
export function prefixJson(info: PrefixInfo): Record<string, unknown> {
  const tokens = Array.from(info.tokens as ArrayLike<number | Uint8Array>, (token) =>
    typeof token === 'number' ? token : keyToHex(token),
  );
  return { ...info, loraId: info.loraId?.toString() ?? null, tokens };
}

function scopeWords({ loraId, salted }: PrefixInfo): string {
  const words = [...(loraId === null ? [] : [`LoRA ${loraId}`]), ...(salted ? ['a salt, which is not told'] : [])];
  return words.length === 0 ? 'none' : words.join(', ');
}
