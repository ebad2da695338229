import type { ComputeStep } from '../../kernel/compute-step.ts';

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

/** Adds two copies for each page, through `bounce`. */
export function addPageCopyCommands(step: ComputeStep, options: PageCopyCommandOptions): void {
  const { pool, slotBytes, sources, targets, count, bounce } = options;
  const atOnce = Math.floor(bounce.size / slotBytes);
  for (let done = 0; done < count; done += atOnce) {
    const num = Math.min(atOnce, count - done);
    for (let i = 0; i < num; i++) {
      step.copy({ buffer: pool, offset: sources[done + i] * slotBytes, size: slotBytes }, bounce, i * slotBytes);
    }
    for (let i = 0; i < num; i++) {
      step.copy({ buffer: bounce, offset: i * slotBytes, size: slotBytes }, pool, targets[done + i] * slotBytes);
    }
  }
}

export interface PageClearCommandOptions extends PageCommandOptions {
  slots: Int32Array;
  /** Entries of `slots` to use. */
  count: number;
}

/** Adds one clear for each page. */
export function addPageClearCommands(step: ComputeStep, options: PageClearCommandOptions): void {
  const { pool, slotBytes, slots, count } = options;
  for (let i = 0; i < count; i++) step.clear({ buffer: pool, offset: slots[i] * slotBytes, size: slotBytes });
}
