import type { PageCommand, PageDevice, PoolMemory, PoolSpec } from '@bufferwise/cache-manager';
import { PoolError } from '../errors/device-error.ts';
import { ComputeContext } from '../kernel/compute-context.ts';
import type { ComputeStep } from '../kernel/compute-step.ts';
import { BUFFER_USAGE } from '../kernel/gpu-flags.ts';
import { recordPageClearCommands, recordPageCopyCommands, recordPageMoveCommands } from '../kernels/page-copy/page-commands.ts';
import { recordPageClear, recordPageCopy, uploadSlotPairs, uploadSlots } from '../kernels/page-copy/page-copy.ts';
import { forEachSlotRun } from '../kernels/page-copy/slot-runs.ts';
import { DeviceLoss, type DeviceLostError } from './device-lost.ts';
import { requirePoolFits } from './limits.ts';
import { Readback, type ReadRange } from './readback.ts';
import { WebGpuPoolMemory } from './webgpu-pool-memory.ts';

export interface WebGpuPageDeviceOptions {
  /** Bytes of mappable memory kept between reads, default 32 MiB. */
  keepReadbackBytes?: number;
  /**
   * How pages are moved: by the page-copy kernel (default on a GPU), or by copy commands through a small buffer (default on a
   * software device, where they are five to ten times as fast).
   */
  pageMoves?: 'kernel' | 'commands';
}

/** Bytes of the buffer that copy commands go through, unless a slot is larger. */
const BOUNCE_BYTES = 2 ** 20;

/**
 * Page memory on a WebGPU device: one buffer for each pool, all page copies and clears of a call in one submission.
 *
 * The device belongs to the caller, who requests it (see `requiredLimits`) and destroys it. Once it is lost, `execute` and
 * `writeSlots` do nothing, as all of WebGPU does then, while `createPool(...).ready`, `readSlots` and `landed` reject with
 * `DeviceLostError`; `lost` tells as soon as it is known.
 */
export class WebGpuPageDevice implements PageDevice {
  readonly device: GPUDevice;
  readonly #context: ComputeContext;
  readonly #loss: DeviceLoss;
  readonly #readback: Readback;
  readonly #byCommands: boolean;
  readonly #pools = new Set<WebGpuPoolMemory>();
  #allocatedBytes = 0;
  #bounce: GPUBuffer | undefined;

  constructor(device: GPUDevice, options: WebGpuPageDeviceOptions = {}) {
    this.device = device;
    this.#context = ComputeContext.of(device);
    this.#loss = new DeviceLoss(device);
    this.#readback = new Readback(device, options.keepReadbackBytes ?? 32 * 2 ** 20);
    this.#byCommands = (options.pageMoves ?? (device.adapterInfo.isFallbackAdapter ? 'commands' : 'kernel')) === 'commands';
  }

  /** Resolves when the device is lost. */
  get lost(): Promise<DeviceLostError> {
    return this.#loss.lost;
  }

  /** Bytes of all pools that exist or are being made. */
  get allocatedBytes(): number {
    return this.#allocatedBytes;
  }

  /** Bytes of mappable memory, waiting for reads or kept for the next. */
  get readbackBytes(): number {
    return this.#readback.bytesInFlight + this.#readback.idleBytes;
  }

  /**
   * @throws {PoolError} `pool-spec`
   * @throws {DeviceLimitError} when the pool is beyond the limits of this device
   */
  createPool(spec: PoolSpec): WebGpuPoolMemory {
    requireSpec(spec);
    requirePoolFits(spec, this.device.limits, 'Request the device with requiredLimits(pools), or give the pool fewer slots.');
    const pool = new WebGpuPoolMemory(this.device, { ...spec }, this.#loss, (gone) => {
      this.#pools.delete(gone);
      this.#allocatedBytes -= gone.bytes;
    });
    this.#pools.add(pool);
    this.#allocatedBytes += pool.bytes;
    return pool;
  }

  /** @throws {PoolError} `pool-unusable` or `pool-range`, before anything is submitted */
  execute(commands: readonly PageCommand[]): void {
    for (const command of commands) this.#requireCommand(command);
    const step = this.#context.step('bufferwise pages');
    for (const command of commands) {
      if (command.count === 0) continue;
      if (command.kind === 'copy' && command.targetPools) this.#addMoves(step, command, command.targetPools);
      else if (this.#byCommands) this.#addCommands(step, command);
      else this.#addDispatches(step, command);
    }
    step.submit();
  }

  /** The copies out of the slots are submitted before the call returns. @throws {DeviceLostError} or {PoolError} as a rejection */
  async readSlots(pool: PoolMemory, slots: Int32Array, target: Uint8Array): Promise<void> {
    const { buffer, spec } = this.#own(pool);
    requireSlots(spec, slots, slots.length);
    requireBytes(spec, slots, target, 'target');
    if (this.#loss.error) throw this.#loss.error;
    const ranges: ReadRange[] = [];
    forEachSlotRun(slots, (first, num) => ranges.push({ buffer, offset: first * spec.slotBytes, size: num * spec.slotBytes }));
    await this.#readback.read(spec.label, ranges, target);
  }

  /** @throws {PoolError} `pool-unusable` or `pool-range`, before anything is written */
  writeSlots(pool: PoolMemory, slots: Int32Array, source: Uint8Array): void {
    const { buffer, spec } = this.#own(pool);
    requireSlots(spec, slots, slots.length);
    requireBytes(spec, slots, source, 'source');
    const bytes = source as Uint8Array<ArrayBuffer>;
    forEachSlotRun(slots, (first, num, position) => {
      this.device.queue.writeBuffer(buffer, first * spec.slotBytes, bytes, position * spec.slotBytes, num * spec.slotBytes);
    });
  }

  async landed(): Promise<void> {
    await this.device.queue.onSubmittedWorkDone();
    const loss = await this.#loss.reasonOf(undefined);
    if (loss) throw loss;
  }

  #addDispatches(step: ComputeStep, command: PageCommand): void {
    const { count, pools } = command;
    const copies = command.kind === 'copy';
    const slots = copies
      ? uploadSlotPairs(step, command.sources, command.targets, count)
      : uploadSlots(step, command.slots, count);
    for (const pool of pools) {
      const options = { pool: this.#own(pool).buffer, slotBytes: pool.spec.slotBytes, slots, count };
      if (copies) recordPageCopy(step, options);
      else recordPageClear(step, options);
    }
  }

  /** Between buffers the device's own copy commands are the fastest there is. */
  #addMoves(step: ComputeStep, command: PageCommand & { kind: 'copy' }, targetPools: readonly PoolMemory[]): void {
    const { pools, sources, targets, count } = command;
    pools.forEach((pool, i) => {
      const targetPool = this.#own(targetPools[i]).buffer;
      const { slotBytes } = pool.spec;
      recordPageMoveCommands(step, { pool: this.#own(pool).buffer, targetPool, slotBytes, sources, targets, count });
    });
  }

  #addCommands(step: ComputeStep, command: PageCommand): void {
    for (const memory of command.pools) {
      const pool = this.#own(memory).buffer;
      const { slotBytes } = memory.spec;
      if (command.kind === 'copy') {
        const { sources, targets, count } = command;
        recordPageCopyCommands(step, { pool, slotBytes, sources, targets, count, bounce: this.#bounceOf(slotBytes) });
      } else {
        recordPageClearCommands(step, { pool, slotBytes, slots: command.slots, count: command.count });
      }
    }
  }

  /** A buffer that holds at least one slot. A smaller one is left to the steps that use it, and collected after them. */
  #bounceOf(slotBytes: number): GPUBuffer {
    if (!this.#bounce || this.#bounce.size < slotBytes) {
      this.#bounce = this.device.createBuffer({
        label: 'bufferwise page bounce',
        size: Math.max(BOUNCE_BYTES, slotBytes),
        usage: BUFFER_USAGE.COPY_SRC | BUFFER_USAGE.COPY_DST,
      });
    }
    return this.#bounce;
  }

  /** Destroys all pools and the memory kept for reads, not the device. */
  destroy(): void {
    for (const pool of [...this.#pools]) pool.destroy();
    this.#readback.destroy();
    this.#bounce?.destroy();
    this.#bounce = undefined;
  }

  #requireCommand(command: PageCommand): void {
    const { count } = command;
    command.pools.forEach((pool, i) => {
      const { spec } = this.#own(pool);
      if (command.kind === 'clear') {
        requireSlots(spec, command.slots, count);
        return;
      }
      const target = command.targetPools === undefined ? pool : requireTarget(spec, pool, command.targetPools[i]);
      requireSlots(spec, command.sources, count);
      requireSlots(this.#own(target).spec, command.targets, count);
    });
  }

  #own(pool: PoolMemory): WebGpuPoolMemory {
    if (pool instanceof WebGpuPoolMemory && this.#pools.has(pool)) return pool;
    throw new PoolError(
      'pool-unusable',
      pool.spec.label,
      'the pool was destroyed or belongs to another device. Create it with this device.',
    );
  }
}

function requireSpec(spec: PoolSpec): void {
  const { slotBytes, numSlots } = spec;
  if (!Number.isInteger(slotBytes) || slotBytes <= 0 || slotBytes % 4 !== 0) {
    throw new PoolError(
      'pool-spec',
      spec.label,
      `slotBytes is ${slotBytes}; a slot has a positive multiple of 4 bytes. Pad its buffers.`,
    );
  }
  if (!Number.isInteger(numSlots) || numSlots < 1) {
    throw new PoolError('pool-spec', spec.label, `numSlots is ${numSlots}; a pool has at least one slot. Raise the quota.`);
  }
}

function requireTarget(spec: PoolSpec, pool: PoolMemory, target: PoolMemory | undefined): PoolMemory {
  if (target !== undefined && target !== pool && target.spec.slotBytes === spec.slotBytes) return target;
  throw new PoolError(
    'pool-range',
    spec.label,
    'its target must be another pool with slots of the same size. Leave targetPools out to copy inside a pool.',
  );
}

/** The device would clamp a slot beyond the pool to its last words, and so damage somebody's page. */
function requireSlots(spec: PoolSpec, slots: Int32Array, count: number): void {
  if (!(count <= slots.length))
    throw new PoolError('pool-range', spec.label, `${count} slots asked for, the index array has ${slots.length}.`);
  for (let i = 0; i < count; i++) {
    if (slots[i] >= 0 && slots[i] < spec.numSlots) continue;
    throw new PoolError(
      'pool-range',
      spec.label,
      `slot ${slots[i]} at position ${i}; the pool has slots 0 to ${spec.numSlots - 1}.`,
    );
  }
}

function requireBytes(spec: PoolSpec, slots: Int32Array, bytes: Uint8Array, name: string): void {
  const needed = slots.length * spec.slotBytes;
  if (bytes.byteLength >= needed) return;
  throw new PoolError('pool-range', spec.label, `${name} has ${bytes.byteLength} bytes, ${slots.length} slots take ${needed}.`);
}
