import type { LayerConfig, ReusePolicy } from '@bufferwise/core-policy';
import { formatCount } from '@bufferwise/scratch-allocator';

/** Buffers that one policy is chosen for: one role, in all layers that need it for equally long. */
export interface BufferClass {
  /** Tells it apart: `key of window 1,024`. */
  readonly name: string;
  readonly role: string;
  /** What its pages are worth keeping for: `full attention`, `window 1,024`, `state`, `replay ring`. Classes of one lifecycle go together. */
  readonly lifecycle: string;
  readonly layerIds: readonly number[];
  /** Bytes over all these layers: of one token in attention, of one sequence elsewhere. */
  readonly bytes: number;
  readonly per: 'token' | 'sequence';
}

/** Policies by the name of a class. What is not named is required. */
export type ClassPolicies = Readonly<Record<string, ReusePolicy>>;

/** The classes of a model's layers, in order of first appearance. */
export function bufferClasses(layers: readonly LayerConfig[], tokensPerBlock: number): BufferClass[] {
  const classes = new Map<string, BufferClass>();
  for (const layer of layers) {
    for (const { role, size } of layer.buffers) {
      const name = classNameOf(layer, role);
      const lifecycle = lifecycleOf(layer, role);
      const per = layer.type === 'ssm' ? 'sequence' : 'token';
      const { layerIds = [], bytes = 0 } = classes.get(name) ?? {};
      const more = layer.type === 'ssm' ? size : size / tokensPerBlock;
      classes.set(name, { name, role, lifecycle, layerIds: [...layerIds, layer.layerId], bytes: bytes + more, per });
    }
  }
  return [...classes.values()];
}

/** Classes by lifecycle, in order of first appearance. */
export function byLifecycle(classes: readonly BufferClass[]): Map<string, readonly BufferClass[]> {
  const found = new Map<string, BufferClass[]>();
  for (const each of classes) found.set(each.lifecycle, [...(found.get(each.lifecycle) ?? []), each]);
  return found;
}

/** The layers with policies by class. */
export function withClassPolicies(layers: readonly LayerConfig[], policies: ClassPolicies): LayerConfig[] {
  return layers.map((layer) => ({
    ...layer,
    buffers: layer.buffers.map((buffer) => ({
      ...buffer,
      reusePolicy: policies[classNameOf(layer, buffer.role)] ?? 'required',
    })),
  }));
}

/** The same for `--policies`: a role has the policy of most of its layers, and the other layers are named. */
export function policiesFlag(classes: readonly BufferClass[], policies: ClassPolicies): string {
  const roles = [...new Set(classes.map(({ role }) => role))];
  return roles
    .flatMap((role) => {
      const ofRole = classes.filter((each) => each.role === role);
      const numLayers = new Map<ReusePolicy, number>();
      for (const { name, layerIds } of ofRole) {
        const policy = policies[name] ?? 'required';
        numLayers.set(policy, (numLayers.get(policy) ?? 0) + layerIds.length);
      }
      const [[usual]] = [...numLayers].sort(([, a], [, b]) => b - a);
      const others = ofRole.filter(({ name }) => (policies[name] ?? 'required') !== usual);
      const named = others.flatMap(({ name, layerIds }) => layerIds.map((id) => `${id}.${role}=${policies[name] ?? 'required'}`));
      return [`${role}=${usual}`, ...named];
    })
    .join(',');
}

function classNameOf(layer: LayerConfig, role: string): string {
  const lifecycle = lifecycleOf(layer, role);
  return layer.type === 'ssm' ? role : `${role} of ${lifecycle}`;
}

function lifecycleOf(layer: LayerConfig, role: string): string {
  if (layer.type === 'ssm') return role.startsWith('replay') ? 'replay ring' : 'state';
  const { slidingWindowSize, numSinkTokens = 0, sparsityGroup } = layer;
  const window = slidingWindowSize === undefined ? 'full attention' : `window ${formatCount(slidingWindowSize)}`;
  const sinks = numSinkTokens === 0 ? '' : ` with ${formatCount(numSinkTokens)} sinks`;
  return `${window}${sinks}${sparsityGroup === undefined ? '' : ` of ${sparsityGroup}`}`;
}
