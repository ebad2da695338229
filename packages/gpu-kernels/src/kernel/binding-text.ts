import type { BindingKind } from './kernel.ts';

/** Bindings of a kernel in the order of their WGSL numbers: how each is bound, and its WGSL type. */
export type BindingTypes = Readonly<Record<string, readonly [kind: BindingKind, type: string]>>;

const ADDRESS_SPACES: Readonly<Record<BindingKind, string>> = {
  uniform: 'uniform',
  'read-only-storage': 'storage, read',
  storage: 'storage, read_write',
};

/** The WGSL declarations of the bindings, so that a kernel whose bindings vary states them once. */
export function bindingText(types: BindingTypes): string {
  return Object.entries(types)
    .map(([name, [kind, type]], i) => `@group(0) @binding(${i}) var<${ADDRESS_SPACES[kind]}> ${name}: ${type};`)
    .join('\n');
}

/** The bindings as `Kernel.bindings` states them. */
export function bindingKinds(types: BindingTypes): Record<string, BindingKind> {
  return Object.fromEntries(Object.entries(types).map(([name, [kind]]) => [name, kind]));
}
