import { KernelError } from '../errors/kernel-error.ts';
import type { BufferRange } from './bind-group-cache.ts';
import type { ComputeContext } from './compute-context.ts';
import { foldWorkgroups } from './dispatch-size.ts';
import { type Kernel, type KernelConstants, withConstants } from './kernel.ts';
import type { CompiledKernel } from './pipeline-cache.ts';
import { StepData, type UploadStaging } from './step-data.ts';

/** A whole buffer, a range of one (bytes; offset 256-aligned, size default: to the end), or data that travels with the step. */
export type Binding = GPUBuffer | { buffer: GPUBuffer; offset?: number; size?: number } | StepData;

export interface DispatchOptions<Name extends string, Constant extends string, Shape> {
  /** What the kernel's dispatch formula is computed from. */
  shape: Shape;
  /** Constants that differ from the kernel's defaults. */
  constants?: Partial<KernelConstants<Constant>>;
  /** One for each binding of the kernel. */
  bindings: Readonly<Record<Name, Binding>>;
  /** Names the bind group for people; default: the kernel's label. */
  label?: string;
}

/** What a submitted step cost, in counts that do not depend on the device. */
export interface StepCounts {
  readonly numDispatches: number;
  /** Copies and clears of buffer ranges. */
  readonly numCopies: number;
  /** Bytes of the step's one upload, padding included; 0 = there was none. */
  readonly uploadedBytes: number;
}

type Operation =
  | {
      kind: 'dispatch';
      label: string;
      kernel: CompiledKernel;
      bindings: readonly Binding[];
      workgroups: readonly [number, number, number];
    }
  | { kind: 'copy'; source: BufferRange | StepData; target: GPUBuffer; targetOffset: number }
  | { kind: 'clear'; target: BufferRange };

/**
 * Work for the device, gathered and handed over at once: many dispatches and copies, one upload, one submission.
 * Operations take effect in the order in which they were added. Made by `ComputeContext.step`.
 */
export class ComputeStep {
  readonly label: string;
  readonly #context: ComputeContext;
  readonly #staging: UploadStaging;
  readonly #operations: Operation[] = [];
  #numDispatches = 0;
  #submitted = false;

  /** @internal use `ComputeContext.step` */
  constructor(context: ComputeContext, staging: UploadStaging, label: string) {
    this.#context = context;
    this.#staging = staging;
    this.label = label;
  }

  /** The device that the step is for: what it offers decides which variant of a kernel runs. */
  get device(): GPUDevice {
    return this.#context.device;
  }

  /** Adds data to the step's upload. `data` is copied before the call returns. Sizes round up to 4 bytes, filled with zeros. */
  upload(data: ArrayBufferView): StepData {
    this.#requireOpen();
    const { offset, size } = this.#staging.append(data);
    return new StepData(this, offset, size);
  }

  /**
   * Adds one dispatch; none when the kernel's formula gives no workgroups.
   * @throws {KernelError} `kernel-unsupported`, or `kernel-dispatch` when a binding is missing, a buffer is bound for reading
   *   and for writing at once, or the workgroups do not fit the device
   */
  dispatch<Name extends string, Constant extends string, Shape>(
    kernel: Kernel<Name, Constant, Shape>,
    options: DispatchOptions<Name, Constant, Shape>,
  ): void {
    this.#requireOpen();
    const constants = withConstants(kernel, options.constants);
    const workgroups = this.#workgroups(kernel, kernel.workgroups(options.shape, constants));
    if (workgroups[0] === 0 || workgroups[1] === 0 || workgroups[2] === 0) return;
    const compiled = this.#context.compiled(kernel, constants);
    const bindings = compiled.bindingNames.map((name) => {
      const binding: Binding | undefined = options.bindings[name as Name];
      if (binding === undefined) throw new KernelError('kernel-dispatch', kernel.label, `binding ${name} is missing.`);
      if (binding instanceof StepData) this.#requireOwn(binding);
      return binding;
    });
    requireNoReadWriteConflict(kernel, compiled.bindingNames, bindings);
    this.#operations.push({ kind: 'dispatch', label: options.label ?? kernel.label, kernel: compiled, bindings, workgroups });
    this.#numDispatches++;
  }

  /**
   * Adds one copy between two different buffers, or from data of this step. Offsets and sizes are bytes, multiples of 4.
   * Inside one buffer WebGPU copies nothing: take the page-copy kernel.
   */
  copy(source: Binding, target: GPUBuffer, targetOffset = 0): void {
    this.#requireOpen();
    if (source instanceof StepData) this.#requireOwn(source);
    const range = source instanceof StepData ? source : bufferRange(source);
    this.#operations.push({ kind: 'copy', source: range, target, targetOffset });
  }

  /** Adds the zeroing of a range; offset and size are bytes, multiples of 4. */
  clear(target: GPUBuffer | { buffer: GPUBuffer; offset?: number; size?: number }): void {
    this.#requireOpen();
    this.#operations.push({ kind: 'clear', target: bufferRange(target) });
  }

  /** Hands everything over in one submission. Later steps and queue writes take effect after it. */
  submit(): StepCounts {
    this.#requireOpen();
    this.#submitted = true;
    const { device } = this.#context;
    const uploadedBytes = this.#staging.length;
    const uploaded = this.#context.upload(this.#staging);
    const numCopies = this.#operations.length - this.#numDispatches;
    if (this.#operations.length > 0) {
      const encoder = device.createCommandEncoder({ label: this.label });
      this.#encode(encoder, uploaded);
      device.queue.submit([encoder.finish({ label: this.label })]);
    }
    this.#operations.length = 0;
    return { numDispatches: this.#numDispatches, numCopies, uploadedBytes };
  }

  #encode(encoder: GPUCommandEncoder, uploaded: GPUBuffer): void {
    const resolve = (binding: Binding): BufferRange =>
      binding instanceof StepData ? { buffer: uploaded, offset: binding.offset, size: binding.size } : bufferRange(binding);
    let pass: GPUComputePassEncoder | undefined;
    for (const operation of this.#operations) {
      if (operation.kind === 'dispatch') {
        pass ??= encoder.beginComputePass({ label: this.label });
        pass.setPipeline(operation.kernel.pipeline);
        pass.setBindGroup(0, this.#context.bindGroup(operation.label, operation.kernel, operation.bindings.map(resolve)));
        pass.dispatchWorkgroups(...operation.workgroups);
        continue;
      }
      pass?.end();
      pass = undefined;
      if (operation.kind === 'copy') {
        const { buffer, offset, size } = resolve(operation.source);
        encoder.copyBufferToBuffer(buffer, offset, operation.target, operation.targetOffset, size);
      } else {
        const { buffer, offset, size } = operation.target;
        encoder.clearBuffer(buffer, offset, size);
      }
    }
    pass?.end();
  }

  #workgroups(kernel: Kernel<string, never, never>, wanted: number | readonly [number, number, number]) {
    const most = this.#context.device.limits.maxComputeWorkgroupsPerDimension;
    const folded = typeof wanted === 'number' ? foldWorkgroups(wanted, most) : wanted;
    if (folded === undefined || folded.some((count) => !(count <= most))) {
      throw new KernelError(
        'kernel-dispatch',
        kernel.label,
        `${wanted} workgroups do not fit maxComputeWorkgroupsPerDimension ${most}. Split the work over several dispatches.`,
      );
    }
    return folded;
  }

  #requireOpen(): void {
    if (!this.#submitted) return;
    throw new KernelError(
      'kernel-step',
      this.label,
      'the step was submitted already. Begin a new one with ComputeContext.step().',
    );
  }

  #requireOwn(data: StepData): void {
    if (data.step === this) return;
    throw new KernelError('kernel-step', this.label, 'the data belongs to another step. Upload it in the step that reads it.');
  }
}

function bufferRange(binding: GPUBuffer | { buffer: GPUBuffer; offset?: number; size?: number }): BufferRange {
  if (!('buffer' in binding)) return { buffer: binding, offset: 0, size: binding.size };
  const offset = binding.offset ?? 0;
  return { buffer: binding.buffer, offset, size: binding.size ?? binding.buffer.size - offset };
}

/** WebGPU would report this later, as an error of the device that names no kernel. */
function requireNoReadWriteConflict(
  kernel: Kernel<string, never, never>,
  names: readonly string[],
  bindings: readonly Binding[],
): void {
  for (let i = 0; i < bindings.length; i++) {
    const written = bindings[i];
    if (kernel.bindings[names[i]] !== 'storage' || written instanceof StepData) continue;
    const { buffer } = bufferRange(written);
    const j = bindings.findIndex(
      (other, at) =>
        kernel.bindings[names[at]] !== 'storage' && !(other instanceof StepData) && bufferRange(other).buffer === buffer,
    );
    if (j < 0) continue;
    throw new KernelError(
      'kernel-dispatch',
      kernel.label,
      `${names[i]} is written and ${names[j]} is read in the same buffer (${buffer.label}). Keep them in two buffers, or copy one first.`,
    );
  }
}
