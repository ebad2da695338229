import type { CompiledKernel } from './pipeline-cache.ts';

/** A range of a buffer, as it is bound. */
export interface BufferRange {
  buffer: GPUBuffer;
  /** Bytes, a multiple of the device's offset alignment (256 by default). */
  offset: number;
  /** Bytes. */
  size: number;
}

/** Bind groups kept before all are forgotten: some hundred layers times some kernels. */
const MAX_BIND_GROUPS = 4096;

/**
 * Bind groups of one device, by layout and bound ranges. Steps of one shape bind the same ranges again and again, and making
 * a bind group costs about as much as encoding the dispatch that uses it.
 */
export class BindGroupCache {
  readonly #device: GPUDevice;
  readonly #bufferIds = new WeakMap<GPUBuffer, number>();
  #nextBufferId = 0;
  readonly #groups = new Map<string, GPUBindGroup>();

  constructor(device: GPUDevice) {
    this.#device = device;
  }

  /** @param ranges one for each binding of the kernel, in the order of the WGSL numbers */
  get(label: string, kernel: CompiledKernel, ranges: readonly BufferRange[]): GPUBindGroup {
    let key = `${kernel.layoutId}`;
    for (const { buffer, offset, size } of ranges) key += ` ${this.#bufferId(buffer)}+${offset}:${size}`;
    const known = this.#groups.get(key);
    if (known) return known;
    if (this.#groups.size >= MAX_BIND_GROUPS) this.#groups.clear();
    const group = this.#device.createBindGroup({
      label,
      layout: kernel.bindGroupLayout,
      entries: ranges.map((resource, binding) => ({ binding, resource })),
    });
    this.#groups.set(key, group);
    return group;
  }

  /** Forgets every bind group; called when a buffer that many of them name is replaced. */
  clear(): void {
    this.#groups.clear();
  }

  #bufferId(buffer: GPUBuffer): number {
    let id = this.#bufferIds.get(buffer);
    if (id === undefined) {
      id = this.#nextBufferId++;
      this.#bufferIds.set(buffer, id);
    }
    return id;
  }
}
