// Errors
export { GpuError } from './errors/gpu-error.ts';
export { KernelError, type KernelErrorCode } from './errors/kernel-error.ts';
// Kernels: stating and running them
export { ComputeContext } from './kernel/compute-context.ts';
export type { Binding, ComputeStep, DispatchOptions, StepCounts } from './kernel/compute-step.ts';
export {
  type BindingKind,
  defineKernel,
  type Kernel,
  type KernelConstants,
  type WorkgroupCount,
  type WorkgroupSize,
} from './kernel/kernel.ts';
export { type ParamLayout, type ParamType, packParams } from './kernel/params.ts';
export type { StepData } from './kernel/step-data.ts';
