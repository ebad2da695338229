import { SLOT_STATES } from '../protocol/memory-frame.ts';
import { colourOfCode, isFreshCode, stateOfCode } from './cell-codes.ts';
import type { CellGrid } from './cell-grid.ts';
import type { Palette } from './palette.ts';

/** No cell looks like this. */
const UNPAINTED = 0xffff;

const [FREE, LOCKED, HELD, DROPPABLE, SCRATCH] = SLOT_STATES.map((_, index) => index);

/**
 * Paints the cells of one pool into a canvas. Each look that a cell can have is drawn once; an update copies the pixels of those cells that
 * have changed and hands the rows between the first and the last of them to the canvas. So ten thousand cells that all change cost
 * about a millisecond, and one that changes costs next to nothing.
 */
export class PoolPainter {
  readonly #context: CanvasRenderingContext2D;
  readonly #sprites = new Map<number, Uint32Array>();
  #grid: CellGrid | null = null;
  #palette: Palette | null = null;
  #image: ImageData | null = null;
  #pixels = new Uint32Array(0);
  #painted = new Uint16Array(0);

  /** @throws {Error} where the canvas has another context already */
  constructor(canvas: HTMLCanvasElement) {
    const context = canvas.getContext('2d');
    if (context === null) throw new Error('The canvas of the map gives no 2D context.');
    this.#context = context;
  }

  /** Gives the pool another shape, or other colours. Everything is painted anew at the next `paint`. */
  prepare(numSlots: number, grid: CellGrid, palette: Palette): void {
    const { canvas } = this.#context;
    canvas.width = grid.width;
    canvas.height = grid.height;
    this.#grid = grid;
    this.#palette = palette;
    this.#image = new ImageData(grid.width, grid.height);
    this.#pixels = new Uint32Array(this.#image.data.buffer);
    this.#painted = new Uint16Array(numSlots).fill(UNPAINTED);
    this.#sprites.clear();
  }

  /**
   * Shows the cells as their codes say.
   *
   * @param codes one for each slot of the last `prepare`
   * @returns how many cells were painted
   */
  paint(codes: Uint8Array): number {
    const grid = this.#grid;
    if (grid === null || this.#image === null) return 0;
    const { cell, gap, columns, width } = grid;
    const pitch = cell + gap;
    let count = 0;
    let firstRow = grid.rows;
    let lastRow = -1;
    for (let slot = 0; slot < this.#painted.length; slot++) {
      const code = codes[slot];
      if (this.#painted[slot] === code) continue;
      this.#painted[slot] = code;
      count++;
      const row = Math.floor(slot / columns);
      if (row < firstRow) firstRow = row;
      if (row > lastRow) lastRow = row;
      const sprite = this.#sprites.get(code) ?? this.#draw(code, cell);
      let to = row * pitch * width + (slot % columns) * pitch;
      for (let from = 0; from < sprite.length; from += cell, to += width) {
        for (let x = 0; x < cell; x++) this.#pixels[to + x] = sprite[from + x];
      }
    }
    if (count > 0) this.#context.putImageData(this.#image, 0, 0, 0, firstRow * pitch, width, (lastRow - firstRow) * pitch + cell);
    return count;
  }

  /** Draws one look of a cell. */
  #draw(code: number, cell: number): Uint32Array {
    const canvas = new OffscreenCanvas(cell, cell);
    const context = canvas.getContext('2d');
    if (context === null || this.#palette === null) return new Uint32Array(cell * cell);
    drawCell(context, { code, cell, palette: this.#palette });
    const sprite = new Uint32Array(context.getImageData(0, 0, cell, cell).data.buffer);
    this.#sprites.set(code, sprite);
    return sprite;
  }
}

function drawCell(
  context: OffscreenCanvasRenderingContext2D,
  { code, cell, palette }: { code: number; cell: number; palette: Palette },
): void {
  const state = stateOfCode(code);
  const colour = palette.colours[colourOfCode(code)];
  const radius = cell > 8 ? cell * 0.24 : 1;
  const shape = (inset: number) => {
    context.beginPath();
    context.roundRect(inset, inset, cell - 2 * inset, cell - 2 * inset, Math.max(0, radius - inset));
  };
  if (state === FREE) {
    context.fillStyle = palette.free;
    shape(0);
    context.fill();
    return;
  }
  context.fillStyle = colour;
  context.strokeStyle = colour;
  context.globalAlpha = state === LOCKED ? 1 : state === HELD ? 0.75 : 0.42;
  shape(0);
  context.fill();
  context.globalAlpha = 1;
  if (state === HELD) {
    // A page that waits: hollow.
    context.globalCompositeOperation = 'destination-out';
    context.globalAlpha = 0.75;
    shape(cell * 0.3);
    context.fill();
    context.globalCompositeOperation = 'source-over';
    context.globalAlpha = 1;
  }
  if (state === SCRATCH) {
    context.lineWidth = Math.max(1, cell / 6);
    context.beginPath();
    context.moveTo(0, cell);
    context.lineTo(cell, 0);
    context.stroke();
  }
  if (state === DROPPABLE && cell > 5) {
    const line = Math.max(1, cell / 12);
    context.lineWidth = line;
    context.globalAlpha = 0.7;
    shape(line / 2);
    context.stroke();
    context.globalAlpha = 1;
  }
  if (isFreshCode(code)) {
    context.fillStyle = palette.glow;
    shape(0);
    context.fill();
  }
}
