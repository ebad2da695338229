import type { BufferExplanation } from './group-explanation.ts';
import type { TextColumn } from './text-table.ts';
import { formatBytes, formatCount } from './units.ts';

/** One row for all layers that have the same roles in the same shape. */
export function bufferColumns(buffers: readonly BufferExplanation[]): TextColumn[] {
  const rows = mergeLayers(buffers);
  return [
    { title: 'roles', align: 'left', cells: rows.map(({ roles }) => roles.join(', ')) },
    { title: 'a page', align: 'right', cells: rows.map(({ buffer }) => formatBytes(buffer.pageBytes)) },
    {
      title: 'tokens a page',
      align: 'right',
      cells: rows.map(({ buffer: { tokensPerPage } }) => (tokensPerPage === null ? '-' : formatCount(tokensPerPage))),
    },
    { title: 'pages a block', align: 'right', cells: rows.map(({ buffer }) => formatCount(buffer.expansion)) },
    { title: 'pool', align: 'right', cells: rows.map(({ buffer }) => formatCount(buffer.pool)) },
    { title: 'layers', align: 'left', cells: rows.map(({ layerIds }) => idRanges(layerIds)) },
  ];
}

/** Buffers of one layer, or of several layers that look alike. */
interface BufferRow {
  roles: readonly string[];
  /** Any one of them. */
  buffer: BufferExplanation;
  layerIds: number[];
}

function mergeLayers(buffers: readonly BufferExplanation[]): BufferRow[] {
  const inLayer = groupBy(buffers, ({ layerId, ...buffer }) => JSON.stringify([layerId, shapeOf(buffer)]));
  const alike = groupBy(inLayer, (some) => JSON.stringify([some.map(({ role }) => role), shapeOf(some[0])]));
  return alike.map((layers) => ({
    roles: layers[0].map(({ role }) => role),
    buffer: layers[0][0],
    layerIds: layers.map(([{ layerId }]) => layerId),
  }));
}

function shapeOf({ pageBytes, expansion, pool }: Pick<BufferExplanation, 'pageBytes' | 'expansion' | 'pool'>): number[] {
  return [pageBytes, expansion, pool];
}

/** Lists of what has the same key, in order of first appearance. */
function groupBy<T>(values: readonly T[], keyOf: (value: T) => string): T[][] {
  const groups = new Map<string, T[]>();
  for (const value of values) {
    const key = keyOf(value);
    const group = groups.get(key);
    if (group) group.push(value);
    else groups.set(key, [value]);
  }
  return [...groups.values()];
}

/** Ids in ascending order, neighbours joined: `0-4, 6, 8-10`. */
function idRanges(ids: readonly number[]): string {
  const ranges: { first: number; last: number }[] = [];
  for (const id of [...ids].sort((a, b) => a - b)) {
    const range = ranges.at(-1);
    if (range !== undefined && range.last + 1 === id) range.last = id;
    else ranges.push({ first: id, last: id });
  }
  return ranges.map(({ first, last }) => (first === last ? `${first}` : `${first}-${last}`)).join(', ');
}
