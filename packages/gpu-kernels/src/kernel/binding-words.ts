import { KernelError } from '../errors/kernel-error.ts';
import type { Binding } from './compute-step.ts';

/** Whole 32-bit words that a binding makes visible to a kernel. */
export function bindingWords(binding: Binding): number {
  const bytes = 'buffer' in binding ? (binding.size ?? binding.buffer.size - (binding.offset ?? 0)) : binding.size;
  return Math.floor(bytes / 4);
}

/**
 * Refuses a binding that ends before what a kernel would touch: WebGPU clamps such accesses onto other data.
 *
 * @param label  the kernel
 * @param name   what is bound
 * @param needed words from the start of the binding
 * @throws {KernelError} `kernel-dispatch` when fewer are bound
 */
export function requireBindingWords(label: string, name: string, binding: Binding, needed: number): void {
  const available = bindingWords(binding);
  if (needed <= available) return;
  const message = `${name} reaches to word ${needed}, but ${available} are bound. Bind a larger range.`;
  throw new KernelError('kernel-dispatch', label, message);
}
