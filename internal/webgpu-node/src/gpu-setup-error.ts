/** The mark by which `BufferwiseError.isInstance` of core-policy knows the errors of every Bufferwise package. */
const MARK = Symbol.for('bufferwise.error');

export type GpuSetupErrorCode =
  /** The npm package that brings WebGPU to Node is not installed. */
  | 'no-webgpu'
  /** WebGPU answered, and has no adapter in this process. */
  | 'no-gpu-adapter'
  /** The software device does not exist for this platform. */
  | 'no-software-gpu'
  /** A file of the software device or of the browser could not be unpacked. */
  | 'gpu-unpack';

/** WebGPU cannot be had in this process. The message names the way out. */
export class GpuSetupError extends Error {
  readonly code: GpuSetupErrorCode;
  readonly [MARK] = true;

  constructor(code: GpuSetupErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
  }
}

export function noWebGpu(cause: unknown): GpuSetupError {
  return new GpuSetupError(
    'no-webgpu',
    'WebGPU in Node comes from the npm package webgpu: `npm install webgpu`, with --global where the command was installed so.',
    { cause },
  );
}
