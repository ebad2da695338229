import { GpuError } from '../errors/gpu-error.ts';

/** The device is gone, and all memory on it. Request a new adapter and device, and build the pools again. */
export class DeviceLostError extends GpuError {
  /** `destroyed`: by a call of ours; `unknown`: by the driver, the system, or a user who pulled the plug. */
  readonly reason: GPUDeviceLostReason;

  constructor(label: string, info: GPUDeviceLostInfo) {
    super(
      'device-lost',
      `The device ${label || '(no label)'} was lost (${info.reason}): ${info.message} Request a new one and rebuild its pools.`,
    );
    this.reason = info.reason;
  }
}

/** What is known about the loss of one device. */
export class DeviceLoss {
  /** Resolves with the error when the device is lost; never rejects. */
  readonly lost: Promise<DeviceLostError>;
  readonly #device: GPUDevice;
  #error: DeviceLostError | undefined;

  constructor(device: GPUDevice) {
    this.#device = device;
    this.lost = device.lost.then((info) => {
      this.#error = new DeviceLostError(device.label, info);
      return this.#error;
    });
  }

  /** The error once the loss was noticed, which is at the earliest one turn of the event loop after it happened. */
  get error(): DeviceLostError | undefined {
    return this.#error;
  }

  /**
   * Why a call to the device failed: the loss when there was one, else the failure itself. A browser may tell of the failure
   * first; the answer to a question asked afterwards comes behind the news of the loss.
   */
  async reasonOf(failure: unknown): Promise<unknown> {
    if (!this.#error) await Promise.race([this.lost, this.#answer()]);
    return this.#error ?? failure;
  }

  async #answer(): Promise<void> {
    try {
      await this.#device.queue.onSubmittedWorkDone();
      this.#device.pushErrorScope('validation');
      await this.#device.popErrorScope();
    } catch {
      // A device that refuses to answer has nothing more to tell.
    }
  }
}
