import { KernelError } from '../errors/kernel-error.ts';

/** One 32-bit field of a WGSL struct. */
export type ParamType = 'u32' | 'i32' | 'f32';

/** Fields of a WGSL struct of scalars, in the order in which the struct declares them. */
export type ParamLayout = Readonly<Record<string, ParamType>>;

/**
 * Lays scalars out as a WGSL `struct` of u32, i32 and f32 fields does, padded to 16 bytes as uniform buffers want it.
 *
 * @throws {KernelError} `kernel-dispatch` when an integer field is not an integer of its range
 * @example packParams({ numTokens: 'u32', scale: 'f32' }, { numTokens: 3, scale: 0.125 })   // 16 bytes
 */
export function packParams<Layout extends ParamLayout>(
  layout: Layout,
  values: Readonly<Record<keyof Layout, number>>,
): Uint8Array {
  const names = Object.keys(layout);
  const bytes = new ArrayBuffer(Math.ceil(Math.max(1, names.length) / 4) * 16);
  const view = new DataView(bytes);
  for (let i = 0; i < names.length; i++) {
    const name = names[i];
    const value = values[name];
    const type = layout[name];
    if (type === 'f32') {
      view.setFloat32(i * 4, value, true);
      continue;
    }
    const [least, most] = type === 'u32' ? [0, 0xffff_ffff] : [-0x8000_0000, 0x7fff_ffff];
    if (!Number.isInteger(value) || value < least || value > most) {
      throw new KernelError('kernel-dispatch', 'parameters', `${name} is ${value}, but the kernel reads ${type}.`);
    }
    if (type === 'u32') view.setUint32(i * 4, value, true);
    else view.setInt32(i * 4, value, true);
  }
  return new Uint8Array(bytes);
}
