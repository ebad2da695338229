import { expect, test } from 'vitest';
import { cellGrid, slotAt } from './cell-grid.ts';

test.each([
  [10, 300, 1],
  [42, 300, 2],
  [78, 120, 1.5],
  [700, 640, 1],
  [10_000, 800, 3],
])('%d cells in a width of %d at scale %d fit, and each is found where it lies', (numSlots, width, scale) => {
  const grid = cellGrid(numSlots, width, scale);
  expect(grid.width).toBeLessThanOrEqual(width * scale);
  expect(grid.rows * grid.columns).toBeGreaterThanOrEqual(numSlots);
  expect((grid.rows - 1) * grid.columns).toBeLessThan(numSlots);
  const pitch = grid.cell + grid.gap;
  for (const slot of [0, 1, grid.columns - 1, grid.columns, numSlots - 1].filter((each) => each < numSlots)) {
    const [left, top] = [(slot % grid.columns) * pitch, Math.floor(slot / grid.columns) * pitch];
    expect(slotAt(grid, numSlots, left, top)).toBe(slot);
    expect(slotAt(grid, numSlots, left + grid.cell - 1, top + grid.cell - 1)).toBe(slot);
    expect(slotAt(grid, numSlots, left + grid.cell, top)).toBeNull();
  }
  expect(slotAt(grid, numSlots, -1, 0)).toBeNull();
  expect(slotAt(grid, numSlots, 0, grid.rows * pitch)).toBeNull();
});

test('a width without room for one cell has a column of them', () => {
  expect(cellGrid(5, 3, 1)).toMatchObject({ columns: 1, rows: 5 });
});
