import type { PoolMemory, PoolSpec } from '@bufferwise/cache-manager';
import { PoolError } from '../errors/device-error.ts';
import { BUFFER_USAGE } from '../kernel/gpu-flags.ts';
import type { DeviceLoss } from './device-lost.ts';
import { poolBytes } from './limits.ts';

/** One pool in one GPU buffer: `[numSlots, slotBytes]`, slot after slot from byte 0. Made by `WebGpuPageDevice.createPool`. */
export class WebGpuPoolMemory implements PoolMemory {
  readonly spec: PoolSpec;
  /** Bytes, the whole buffer. */
  readonly bytes: number;
  /** Kernels that touch pages bind it as `storage` (read_write). Usable until `destroy`. */
  readonly buffer: GPUBuffer;
  readonly ready: Promise<void>;
  readonly #onGone: (pool: WebGpuPoolMemory) => void;
  #gone = false;

  /** @internal use `WebGpuPageDevice.createPool`, which checks the spec first */
  constructor(device: GPUDevice, spec: PoolSpec, loss: DeviceLoss, onGone: (pool: WebGpuPoolMemory) => void) {
    this.spec = spec;
    this.bytes = poolBytes(spec);
    this.#onGone = onGone;
    device.pushErrorScope('validation');
    device.pushErrorScope('out-of-memory');
    this.buffer = device.createBuffer({
      label: `bufferwise ${spec.label}`,
      size: this.bytes,
      usage: BUFFER_USAGE.STORAGE | BUFFER_USAGE.COPY_SRC | BUFFER_USAGE.COPY_DST,
    });
    this.ready = this.#settle(device.popErrorScope(), device.popErrorScope(), loss);
    // A caller that gives the pool up before it looks at `ready` owes no handler.
    this.ready.catch(() => {});
  }

  /** Whether the memory was given back, or never existed. */
  get destroyed(): boolean {
    return this.#gone;
  }

  destroy(): void {
    if (this.#gone) return;
    this.#gone = true;
    this.buffer.destroy();
    this.#onGone(this);
  }

  async #settle(outOfMemory: Promise<GPUError | null>, validation: Promise<GPUError | null>, loss: DeviceLoss): Promise<void> {
    const [memoryError, validationError] = await Promise.all([outOfMemory, validation]);
    const failure = this.#poolError(memoryError, validationError);
    const error = failure ? await loss.reasonOf(failure) : loss.error;
    if (!error) return;
    this.destroy();
    throw error;
  }

  #poolError(memoryError: GPUError | null, validationError: GPUError | null): PoolError | undefined {
    const { label } = this.spec;
    if (memoryError) {
      const message = `no memory for ${this.bytes} bytes: ${memoryError.message} Lower the device quota, or free memory elsewhere.`;
      return new PoolError('pool-out-of-memory', label, message, { cause: memoryError });
    }
    if (validationError) {
      const message = `the driver refused ${this.bytes} bytes: ${validationError.message} See requiredLimits() for the device to request.`;
      return new PoolError('pool-refused', label, message, { cause: validationError });
    }
    return undefined;
  }
}
