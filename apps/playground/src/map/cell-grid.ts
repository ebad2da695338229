/** Where the cells of one pool lie. Lengths in device pixels, so that every edge is sharp. */
export interface CellGrid {
  readonly cell: number;
  readonly gap: number;
  readonly columns: number;
  readonly rows: number;
  readonly width: number;
  readonly height: number;
}

/** Edge of a cell in CSS pixels, by how many there are: a thousand cells are an even texture, forty are things to point at. */
const SIZES: readonly (readonly [numSlots: number, edge: number])[] = [
  [48, 14],
  [160, 11],
  [700, 9],
  [1600, 8],
  [4000, 6],
];
const LEAST_EDGE = 5;

/**
 * @param cssWidth room from left to right, CSS pixels
 * @param scale device pixels of a CSS pixel
 */
export function cellGrid(numSlots: number, cssWidth: number, scale: number): CellGrid {
  const edge = SIZES.find(([most]) => numSlots <= most)?.[1] ?? LEAST_EDGE;
  const cell = Math.max(1, Math.round(edge * scale));
  const gap = Math.max(1, Math.round((edge > 7 ? 2 : 1) * scale));
  const columns = Math.max(1, Math.floor((Math.floor(cssWidth * scale) + gap) / (cell + gap)));
  const rows = Math.ceil(numSlots / columns);
  const across = Math.min(columns, Math.max(1, numSlots));
  return { cell, gap, columns, rows, width: across * (cell + gap) - gap, height: Math.max(1, rows * (cell + gap) - gap) };
}

/** The slot at a point, device pixels from the top left; null between cells and behind the last one. */
export function slotAt(grid: CellGrid, numSlots: number, x: number, y: number): number | null {
  const pitch = grid.cell + grid.gap;
  const column = Math.floor(x / pitch);
  const row = Math.floor(y / pitch);
  if (column < 0 || row < 0 || column >= grid.columns || x - column * pitch >= grid.cell || y - row * pitch >= grid.cell)
    return null;
  const slot = row * grid.columns + column;
  return slot < numSlots ? slot : null;
}
