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
  #error: DeviceLostError | undefined;

  constructor(device: GPUDevice) {
    this.lost = device.lost.then((info) => {
      this.#error = new DeviceLostError(device.label, info);
      return this.#error;
    });
  }

  /** The error once the loss was noticed, which is at the earliest one turn of the event loop after it happened. */
  get error(): DeviceLostError | undefined {
    return this.#error;
  }
}
