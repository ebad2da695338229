import { BindGroupCache, type BufferRange } from './bind-group-cache.ts';
import { ComputeStep } from './compute-step.ts';
import { BUFFER_USAGE } from './gpu-flags.ts';
import { type Kernel, type KernelConstants, withConstants } from './kernel.ts';
import { type CompiledKernel, PipelineCache } from './pipeline-cache.ts';
import { UploadStaging } from './step-data.ts';

const contexts = new WeakMap<GPUDevice, ComputeContext>();

/**
 * What the kernels of one device share: compiled pipelines, bind groups, and the buffer through which steps upload their
 * tables. One per device, for as long as the device lives; see `ComputeContext.of`.
 */
export class ComputeContext {
  readonly device: GPUDevice;
  readonly #pipelines: PipelineCache;
  readonly #bindGroups: BindGroupCache;
  readonly #alignment: number;
  readonly #idleStagings: UploadStaging[] = [];
  #uploadBuffer: GPUBuffer | undefined;

  private constructor(device: GPUDevice) {
    this.device = device;
    this.#pipelines = new PipelineCache(device);
    this.#bindGroups = new BindGroupCache(device);
    this.#alignment = Math.max(device.limits.minUniformBufferOffsetAlignment, device.limits.minStorageBufferOffsetAlignment);
  }

  /** The context of a device: always the same one, so that everybody who computes on it shares what is compiled. */
  static of(device: GPUDevice): ComputeContext {
    let context = contexts.get(device);
    if (!context) {
      context = new ComputeContext(device);
      contexts.set(device, context);
    }
    return context;
  }

  /** Begins a step. Several may be open at once; they take effect in the order in which they are submitted. */
  step(label: string): ComputeStep {
    return new ComputeStep(this, this.#idleStagings.pop() ?? new UploadStaging(this.#alignment), label);
  }

  /**
   * Compiles a kernel ahead of its first dispatch. Optional: a dispatch compiles what it lacks.
   * @throws {KernelError} `kernel-unsupported` or `kernel-compile`
   */
  async warmUp<Constant extends string>(
    kernel: Kernel<string, Constant, never>,
    constants?: Partial<KernelConstants<Constant>>,
  ): Promise<void> {
    await this.#pipelines.warmUp(kernel, withConstants(kernel, constants));
  }

  /** @internal for ComputeStep */
  compiled(kernel: Kernel<string, never, never>, constants: KernelConstants): CompiledKernel {
    return this.#pipelines.get(kernel, constants);
  }

  /** @internal for ComputeStep */
  bindGroup(label: string, kernel: CompiledKernel, ranges: readonly BufferRange[]): GPUBindGroup {
    return this.#bindGroups.get(label, kernel, ranges);
  }

  /**
   * Writes what a step gathered, and takes its staging back. One buffer serves all steps: the queue orders a later write after
   * the submissions that read the earlier one.
   * @internal for ComputeStep
   */
  upload(staging: UploadStaging): GPUBuffer {
    const needed = staging.length;
    if (!this.#uploadBuffer || this.#uploadBuffer.size < needed) {
      this.#uploadBuffer?.destroy();
      this.#bindGroups.clear();
      this.#uploadBuffer = this.device.createBuffer({
        label: 'bufferwise step upload',
        size: 2 ** Math.ceil(Math.log2(Math.max(needed, 64 * 1024))),
        usage: BUFFER_USAGE.UNIFORM | BUFFER_USAGE.STORAGE | BUFFER_USAGE.COPY_DST | BUFFER_USAGE.COPY_SRC,
      });
    }
    if (needed > 0) this.device.queue.writeBuffer(this.#uploadBuffer, 0, staging.bytes, 0, needed);
    staging.reset();
    this.#idleStagings.push(staging);
    return this.#uploadBuffer;
  }
}
