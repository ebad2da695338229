import { KernelError } from '../errors/kernel-error.ts';
import { STAGE_COMPUTE } from './gpu-flags.ts';
import type { Kernel, KernelConstants } from './kernel.ts';

/** A kernel compiled under one set of constants. */
export interface CompiledKernel {
  readonly pipeline: GPUComputePipeline;
  readonly bindGroupLayout: GPUBindGroupLayout;
  /** Binding names in the order of their WGSL numbers. */
  readonly bindingNames: readonly string[];
  /** Unique within the cache; equal for all constants of one kernel, as the bind group layout is. */
  readonly layoutId: number;
}

interface KernelEntry {
  readonly layoutId: number;
  readonly bindingNames: readonly string[];
  readonly module: GPUShaderModule;
  readonly bindGroupLayout: GPUBindGroupLayout;
  readonly pipelineLayout: GPUPipelineLayout;
  readonly compiled: Map<string, CompiledKernel>;
}

/**
 * Compiled kernels of one device, by kernel and constants. What a device offers is fixed when it is requested, so the features
 * need no part in the key: a variant that uses other features is a kernel of its own.
 */
export class PipelineCache {
  readonly #device: GPUDevice;
  readonly #entries = new Map<Kernel, KernelEntry>();

  constructor(device: GPUDevice) {
    this.#device = device;
  }

  /**
   * The compiled kernel, compiled now when it is new. The driver reports faulty WGSL later, as an error of the device.
   * @throws {KernelError} `kernel-unsupported` when the device lacks what the kernel states
   */
  get(kernel: Kernel, constants: KernelConstants): CompiledKernel {
    const key = constantsKey(constants);
    const known = this.#entries.get(kernel)?.compiled.get(key);
    if (known) return known;
    this.#requireSupport(kernel, constants);
    const entry = this.#entry(kernel);
    return this.#remember(entry, key, this.#device.createComputePipeline(this.#descriptor(kernel, constants, entry)));
  }

  /**
   * Compiles ahead of use, off the thread of the caller where the driver can.
   * @throws {KernelError} `kernel-unsupported`, or `kernel-compile` with the driver's message
   */
  async warmUp(kernel: Kernel, constants: KernelConstants): Promise<void> {
    const key = constantsKey(constants);
    if (this.#entries.get(kernel)?.compiled.has(key)) return;
    this.#requireSupport(kernel, constants);
    const entry = this.#entry(kernel);
    let pipeline: GPUComputePipeline;
    try {
      pipeline = await this.#device.createComputePipelineAsync(this.#descriptor(kernel, constants, entry));
    } catch (cause) {
      const messages = (await entry.module.getCompilationInfo()).messages;
      const lines = messages.map((message) => `  line ${message.lineNum}: ${message.message}`).join('\n');
      throw new KernelError(
        'kernel-compile',
        kernel.label,
        `the driver refused the pipeline with constants ${key}.\n${lines || `  ${(cause as Error).message}`}`,
        { cause },
      );
    }
    if (!entry.compiled.has(key)) this.#remember(entry, key, pipeline);
  }

  #remember(entry: KernelEntry, key: string, pipeline: GPUComputePipeline): CompiledKernel {
    const { bindGroupLayout, bindingNames, layoutId } = entry;
    const compiled: CompiledKernel = { pipeline, bindGroupLayout, bindingNames, layoutId };
    entry.compiled.set(key, compiled);
    return compiled;
  }

  #entry(kernel: Kernel): KernelEntry {
    const known = this.#entries.get(kernel);
    if (known) return known;
    const device = this.#device;
    const { label, code } = kernel;
    const bindingNames = Object.keys(kernel.bindings);
    const bindGroupLayout = device.createBindGroupLayout({
      label,
      entries: bindingNames.map((name, binding) => ({
        binding,
        visibility: STAGE_COMPUTE,
        buffer: { type: kernel.bindings[name] },
      })),
    });
    const entry: KernelEntry = {
      layoutId: this.#entries.size,
      bindingNames,
      module: device.createShaderModule({ label, code }),
      bindGroupLayout,
      pipelineLayout: device.createPipelineLayout({ label, bindGroupLayouts: [bindGroupLayout] }),
      compiled: new Map(),
    };
    this.#entries.set(kernel, entry);
    return entry;
  }

  #descriptor(kernel: Kernel, constants: KernelConstants, entry: KernelEntry): GPUComputePipelineDescriptor {
    return {
      label: `${kernel.label} ${constantsKey(constants)}`,
      layout: entry.pipelineLayout,
      compute: { module: entry.module, entryPoint: kernel.entryPoint ?? 'main', constants: { ...constants } },
    };
  }

  #requireSupport(kernel: Kernel, constants: KernelConstants): void {
    const { limits, features } = this.#device;
    for (const feature of kernel.features ?? []) {
      if (features.has(feature)) continue;
      throw new KernelError(
        'kernel-unsupported',
        kernel.label,
        `needs the feature ${feature}. Request the device with it in requiredFeatures, or take the variant of the kernel without it.`,
      );
    }
    const [x, y, z] = kernel.workgroupSize(constants);
    const kinds = Object.values(kernel.bindings);
    const needs: [limit: string, most: number, need: number][] = [
      ['maxComputeWorkgroupSizeX', limits.maxComputeWorkgroupSizeX, x],
      ['maxComputeWorkgroupSizeY', limits.maxComputeWorkgroupSizeY, y],
      ['maxComputeWorkgroupSizeZ', limits.maxComputeWorkgroupSizeZ, z],
      ['maxComputeInvocationsPerWorkgroup', limits.maxComputeInvocationsPerWorkgroup, x * y * z],
      ['maxComputeWorkgroupStorageSize', limits.maxComputeWorkgroupStorageSize, kernel.workgroupStorageBytes?.(constants) ?? 0],
      [
        'maxStorageBuffersPerShaderStage',
        limits.maxStorageBuffersPerShaderStage,
        kinds.filter((kind) => kind !== 'uniform').length,
      ],
      [
        'maxUniformBuffersPerShaderStage',
        limits.maxUniformBuffersPerShaderStage,
        kinds.filter((kind) => kind === 'uniform').length,
      ],
    ];
    for (const [limit, most, need] of needs) {
      if (need <= most) continue;
      throw new KernelError(
        'kernel-unsupported',
        kernel.label,
        `needs ${limit} ${need} with constants ${constantsKey(constants)}, the device has ${most}. ` +
          'Request the device with that limit in requiredLimits, or choose smaller constants.',
      );
    }
  }
}

function constantsKey(constants: KernelConstants): string {
  return JSON.stringify(constants);
}
