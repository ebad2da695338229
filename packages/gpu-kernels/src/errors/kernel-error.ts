import { GpuError } from './gpu-error.ts';

export type KernelErrorCode =
  /** The device lacks a feature or a limit that the kernel states. */
  | 'kernel-unsupported'
  /** The driver refused the WGSL code or the pipeline made of it. */
  | 'kernel-compile'
  /** The bindings or the shape of one dispatch do not fit the kernel. */
  | 'kernel-dispatch'
  /** Pages lie in a way that the kernel would misread. */
  | 'kernel-layout'
  /** A step was used after it was submitted, or mixes data of two steps. */
  | 'kernel-step';

/** A kernel cannot run: on this device, with this code, or with these arguments. */
export class KernelError extends GpuError {
  /** Label of the kernel, or of the step. */
  readonly label: string;

  constructor(code: KernelErrorCode, label: string, message: string, options?: { cause?: unknown }) {
    super(code, `${label}: ${message}`, options);
    this.label = label;
  }
}
