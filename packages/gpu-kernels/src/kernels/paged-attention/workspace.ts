import type { ComputeContext } from '../../kernel/compute-context.ts';
import { BUFFER_USAGE } from '../../kernel/gpu-flags.ts';
import { attentionError } from './attention-shape.ts';

/** Memory for what lives as long as one call. It grows; steps that are not yet submitted may name smaller ones, so they are kept. */
export class Workspace {
  readonly #context: ComputeContext;
  readonly #label: string;
  /** The last one is in use. Sizes double, so they are few. */
  readonly #buffers: GPUBuffer[] = [];

  constructor(context: ComputeContext, label: string) {
    this.#context = context;
    this.#label = label;
  }

  /**
   * A buffer of at least so many words, the same one as long as it is large enough.
   * @throws {KernelError} `kernel-dispatch` when the device binds fewer
   */
  get(words: number): GPUBuffer {
    const current = this.#buffers.at(-1);
    const bytes = 4 * words;
    if (current && current.size >= bytes) return current;
    const { device } = this.#context;
    const most = Math.min(device.limits.maxStorageBufferBindingSize, device.limits.maxBufferSize);
    if (bytes > most) {
      throw attentionError(
        `${this.#label} take ${bytes} bytes, the device binds ${most}. Split the requests over several calls.`,
      );
    }
    const buffer = device.createBuffer({
      label: this.#label,
      size: Math.max(bytes, Math.min(2 * (current?.size ?? 0), most)),
      usage: BUFFER_USAGE.STORAGE | BUFFER_USAGE.COPY_DST,
    });
    this.#buffers.push(buffer);
    return buffer;
  }

  /** Frees the memory. Steps that name it must have been submitted. */
  destroy(): void {
    for (const buffer of this.#buffers.splice(0)) buffer.destroy();
  }
}
