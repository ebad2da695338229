import { effect } from '@preact/signals';
import { writeCodes } from '../../map/cell-codes.ts';
import { type CellGrid, cellGrid } from '../../map/cell-grid.ts';
import { Freshness } from '../../map/freshness.ts';
import { type Palette, readPalette } from '../../map/palette.ts';
import { PoolPainter } from '../../map/pool-painter.ts';
import { colourMode, frame, groups } from '../../state/store.ts';
import { lessMotion, theme } from '../theme.ts';

interface PoolCanvas {
  readonly canvas: HTMLCanvasElement;
  readonly painter: PoolPainter;
  width: number;
  grid: CellGrid | null;
  codes: Uint8Array;
}

/** Keeps the canvases of all pools up to date: once for each picture that the screen shows, and only when something has changed. */
export class MapController {
  readonly #pools = new Map<number, PoolCanvas>();
  readonly #freshness = new Freshness();
  #palette: Palette | null = null;
  #scheduled = 0;
  #sequence = -1;

  /** Follows what decides about the picture. @returns how to end it */
  start(): () => void {
    const ends = [
      effect(() => {
        void [frame.value, colourMode.value, groups.value];
        this.#schedule();
      }),
      effect(() => {
        void theme.value;
        this.#palette = null;
        for (const pool of this.#pools.values()) pool.grid = null;
        this.#schedule();
      }),
    ];
    return () => {
      for (const end of ends) end();
      cancelAnimationFrame(this.#scheduled);
      this.#scheduled = 0;
    };
  }

  /** Takes the canvas of a pool in. @returns how to let go of it */
  add(index: number, canvas: HTMLCanvasElement): () => void {
    this.#pools.set(index, { canvas, painter: new PoolPainter(canvas), width: 0, grid: null, codes: new Uint8Array(0) });
    return () => this.#pools.delete(index);
  }

  /** A pool has so much room from left to right, CSS pixels. */
  setWidth(index: number, width: number): void {
    const pool = this.#pools.get(index);
    if (pool === undefined || Math.abs(pool.width - width) < 1) return;
    pool.width = width;
    pool.grid = null;
    this.#schedule();
  }

  gridOf(index: number): CellGrid | null {
    return this.#pools.get(index)?.grid ?? null;
  }

  #schedule(): void {
    if (this.#scheduled === 0) this.#scheduled = requestAnimationFrame(() => this.#paint());
  }

  #paint(): void {
    this.#scheduled = 0;
    const now = performance.now();
    const shown = frame.peek();
    if (shown === null) return;
    this.#palette ??= readPalette(document.documentElement);
    if (shown.sequence !== this.#sequence) {
      this.#sequence = shown.sequence;
      this.#freshness.take(shown, now);
    }
    const policies = groups.peek().map(({ policy }) => policy);
    const freshUntil = lessMotion.peek() ? null : this.#freshness.until;
    const colouring = { mode: colourMode.peek(), policies, freshUntil, now };
    for (const [index, pool] of this.#pools) {
      const about = shown.pools[index];
      if (about === undefined || pool.width === 0) continue;
      if (pool.grid === null || pool.codes.length !== about.numSlots) this.#shape(pool, about.numSlots, this.#palette);
      writeCodes(shown, about, colouring, pool.codes);
      pool.painter.paint(pool.codes);
    }
    if (freshUntil !== null && this.#freshness.isAny(now)) this.#schedule();
  }

  #shape(pool: PoolCanvas, numSlots: number, palette: Palette): void {
    const scale = window.devicePixelRatio || 1;
    pool.grid = cellGrid(numSlots, pool.width, scale);
    pool.codes = new Uint8Array(numSlots);
    pool.painter.prepare(numSlots, pool.grid, palette);
    pool.canvas.style.width = `${pool.grid.width / scale}px`;
    pool.canvas.style.height = `${pool.grid.height / scale}px`;
  }
}
