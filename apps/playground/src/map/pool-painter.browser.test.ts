import { afterEach, expect, test } from 'vitest';
import { emptyColumns, type MemoryFrame } from '../protocol/memory-frame.ts';
import { type Colouring, writeCodes } from './cell-codes.ts';
import { cellGrid } from './cell-grid.ts';
import type { Palette } from './palette.ts';
import { PoolPainter } from './pool-painter.ts';

const NUM_PAGES = 10_000;
const palette: Palette = {
  colours: ['#f00', '#0f0', '#00f', '#ff0', '#0ff', '#f0f', '#888', '#fff', '#444', '#222'],
  free: '#123456',
  glow: 'rgb(255 255 255 / 0.5)',
};
const colouring: Colouring = { mode: 'group', policies: [], freshUntil: null, now: 0 };

afterEach(() => document.body.replaceChildren());

/** A pool in which every page belongs to one group, in one state. */
function frameOf(numSlots: number, state: number, group: number): MemoryFrame {
  const { buffer: _, ...columns } = emptyColumns(numSlots);
  columns.state.fill(state);
  columns.group.fill(group);
  const pool = {
    tier: 0,
    medium: 'device' as const,
    groupIds: [0],
    slotBytes: 1,
    firstSlot: 0,
    numSlots,
    numFree: 0,
    mostInUse: null,
  };
  return { sequence: 0, pools: [pool], numSlots, omitted: 0, ...columns };
}

function painterFor(numSlots: number) {
  const canvas = document.createElement('canvas');
  document.body.append(canvas);
  const painter = new PoolPainter(canvas);
  const grid = cellGrid(numSlots, 800, 1);
  painter.prepare(numSlots, grid, palette);
  const pixel = (slot: number) => {
    const pitch = grid.cell + grid.gap;
    const [x, y] = [(slot % grid.columns) * pitch + grid.cell / 2, Math.floor(slot / grid.columns) * pitch + grid.cell / 2];
    return [...(canvas.getContext('2d') as CanvasRenderingContext2D).getImageData(Math.floor(x), Math.floor(y), 1, 1).data];
  };
  const codes = new Uint8Array(numSlots);
  const show = (frame: MemoryFrame) => {
    writeCodes(frame, frame.pools[0], colouring, codes);
    return painter.paint(codes);
  };
  return { show, pixel };
}

test('a cell shows the group of its page, and is painted again only when it looks different', () => {
  const { show, pixel } = painterFor(300);
  const frame = frameOf(300, 1, 0);
  expect(show(frame)).toBe(300);
  expect(pixel(7)).toEqual([255, 0, 0, 255]);
  expect(show(frame)).toBe(0);
  frame.group[7] = 1;
  frame.state[299] = 0;
  expect(show(frame)).toBe(2);
  expect(pixel(7)).toEqual([0, 255, 0, 255]);
  expect(pixel(8)).toEqual([255, 0, 0, 255]);
  expect(pixel(299)).toEqual([0x12, 0x34, 0x56, 255]);
});

test('ten thousand pages that all change are on the canvas well within one picture of a screen', async ({ annotate }) => {
  const { show, pixel } = painterFor(NUM_PAGES);
  const frames = [0, 1, 2].map((group) => frameOf(NUM_PAGES, 1, group));
  const times: number[] = [];
  for (let update = 0; update < 120; update++) {
    const started = performance.now();
    expect(show(frames[update % 3])).toBe(NUM_PAGES);
    times.push(performance.now() - started);
    // The browser shows each of them, as it does while the engine runs.
    await new Promise(requestAnimationFrame);
  }
  expect(pixel(NUM_PAGES - 1)).toEqual([0, 0, 255, 255]);
  times.sort((a, b) => a - b);
  const median = times[times.length / 2];
  await annotate(
    `median ${median.toFixed(2)} ms, slowest ${times[times.length - 1].toFixed(2)} ms an update of ${NUM_PAGES} pages`,
  );
  expect(median).toBeLessThan(1000 / 60);
});
