import type { ComputeStep } from '../../kernel/compute-step.ts';
import { forEachSlotRun } from './slot-runs.ts';

/**
 * Page copy and clear by the device's own copy commands instead of a kernel. A software device runs those as memcpy, five to
 * ten times as fast as any kernel; a GPU is better served by the kernel, which moves each byte once and takes one command.
 */
export interface PageCommandOptions {
  /** The whole pool, `[numSlots, slotBytes]`. */
  pool: GPUBuffer;
  /** Bytes of one slot, a positive multiple of 4. */
  slotBytes: number;
}

export interface PageCopyCommandOptions extends PageCommandOptions {
  sources: Int32Array;
  targets: Int32Array;
  /** Entries of `sources` and `targets` to use. No slot is a target twice, or a source and a target. */
  count: number;
  /** Holds some pages on their way, because no command copies inside one buffer. At least `slotBytes` bytes. */
  bounce: GPUBuffer;
}

/** Records two copies for each page, through `bounce`; one for neighbours. */
export function recordPageCopyCommands(step: ComputeStep, options: PageCopyCommandOptions): void {
  const { pool, slotBytes, sources, targets, count, bounce } = options;
  const atOnce = Math.floor(bounce.size / slotBytes);
  for (let done = 0; done < count; done += atOnce) {
    const end = Math.min(done + atOnce, count);
    forEachSlotRun(sources.subarray(done, end), (first, num, position) => {
      step.copy({ buffer: pool, offset: first * slotBytes, size: num * slotBytes }, bounce, position * slotBytes);
    });
    forEachSlotRun(targets.subarray(done, end), (first, num, position) => {
      step.copy({ buffer: bounce, offset: position * slotBytes, size: num * slotBytes }, pool, first * slotBytes);
    });
  }
}

export interface PageMoveCommandOptions extends PageCommandOptions {
  /** Another pool, with slots of the same size. */
  targetPool: GPUBuffer;
  sources: Int32Array;
  targets: Int32Array;
  /** Entries of `sources` and `targets` to use. No slot is a target twice. */
  count: number;
}

/** Records copies of pages into another pool: one for each page, or run of neighbours that stay neighbours. */
export function recordPageMoveCommands(step: ComputeStep, options: PageMoveCommandOptions): void {
  const { pool, targetPool, slotBytes, sources, targets, count } = options;
  forEachSlotRun(sources.subarray(0, count), (first, num, position) => {
    forEachSlotRun(targets.subarray(position, position + num), (firstTarget, numTargets, offset) => {
      const range = { buffer: pool, offset: (first + offset) * slotBytes, size: numTargets * slotBytes };
      step.copy(range, targetPool, firstTarget * slotBytes);
    });
  });
}

export interface PageClearCommandOptions extends PageCommandOptions {
  slots: Int32Array;
  /** Entries of `slots` to use. */
  count: number;
}

/** Records one clear for each page, or run of neighbours. */
export function recordPageClearCommands(step: ComputeStep, options: PageClearCommandOptions): void {
  const { pool, slotBytes, slots, count } = options;
  forEachSlotRun(slots.subarray(0, count), (first, num) => {
    step.clear({ buffer: pool, offset: first * slotBytes, size: num * slotBytes });
  });
}
