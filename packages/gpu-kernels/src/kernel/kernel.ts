/** How a kernel binds a buffer. One buffer cannot be bound `read-only-storage` and `storage` in the same dispatch. */
export type BindingKind = 'uniform' | 'read-only-storage' | 'storage';

/** Values of WGSL `override` constants, by name. */
export type KernelConstants<Constant extends string = string> = Readonly<Record<Constant, number>>;

/** Invocations of one workgroup along x, y and z. */
export type WorkgroupSize = readonly [x: number, y: number, z: number];

/**
 * Workgroups of one dispatch. A plain number is a row that may be longer than one dimension of the device allows: it is folded
 * over x and y (see `foldWorkgroups`), so the WGSL code reads its place as `workgroup_id.y * num_workgroups.x + workgroup_id.x`
 * and returns when that is not below the number it wants. 0 anywhere means: nothing to do, no dispatch.
 */
export type WorkgroupCount = number | readonly [x: number, y: number, z: number];

/**
 * What every kernel states, as plain data: all that is compiled, apart from what is bound at a dispatch.
 *
 * WGSL bindings are `@group(0) @binding(i)`, where i is the place of the name in `bindings`, and bear the same names there.
 */
export interface Kernel<Binding extends string = string, Constant extends string = string, Shape = unknown> {
  /** Unique name; labels of pipelines and errors begin with it. */
  readonly label: string;
  /** The whole WGSL module. A variant with other `enable` lines is a kernel of its own. */
  readonly code: string;
  /** Name of the `@compute` function, default `main`. */
  readonly entryPoint?: string;
  /** Name and kind of each binding, in the order of their WGSL numbers. */
  readonly bindings: Readonly<Record<Binding, BindingKind>>;
  /** `override` constants with their default values. All of them are passed at compilation. */
  readonly constants: KernelConstants<Constant>;
  /** Features that the WGSL code needs beyond the core; the device must have been requested with them. */
  readonly features?: readonly GPUFeatureName[];
  /** The `@workgroup_size` that the code has under these constants. */
  workgroupSize(constants: KernelConstants<Constant>): WorkgroupSize;
  /** Bytes of `var<workgroup>` that the code uses under these constants; absent = none worth a check. */
  workgroupStorageBytes?(constants: KernelConstants<Constant>): number;
  /** The dispatch formula. */
  workgroups(shape: Shape, constants: KernelConstants<Constant>): WorkgroupCount;
}

/** Gives a kernel its precise type: binding names, constant names and shape are inferred from the value. */
export function defineKernel<Binding extends string, Constant extends string, Shape>(
  kernel: Kernel<Binding, Constant, Shape>,
): Kernel<Binding, Constant, Shape> {
  return kernel;
}

/** The constants of a kernel with some of them replaced. */
export function withConstants<Constant extends string>(
  kernel: Kernel<string, Constant, unknown>,
  replaced: Partial<KernelConstants<Constant>> | undefined,
): KernelConstants<Constant> {
  return replaced ? { ...kernel.constants, ...replaced } : kernel.constants;
}
