import type { GroupReuseStatus } from '@bufferwise/cache-manager';
import type { LayerConfig, LayerGroupId } from '@bufferwise/core-policy';
import type { StorageLayout } from '@bufferwise/scratch-allocator';
import { checkLayout } from '../consumer/check-layout.ts';
import type { BindOptions, ConsumerAdapter, ConsumerStep, ReplayPlan } from '../consumer/consumer-adapter.ts';
import { firstLiveToken, usualReplay } from '../consumer/replay.ts';
import { AdapterError } from '../errors.ts';
import { HashAttention } from './hash-attention.ts';
import { HashRecurrence } from './hash-recurrence.ts';

/** What a step of `HashConsumer` computes on. */
export interface HashWork {
  /** For each request one word a token of the step: what a model would have as activations. */
  readonly inputs: readonly Uint32Array[];
  /** For each request one word a token: written by `record`. As long as its inputs. */
  readonly outputs: readonly Uint32Array[];
}

/**
 * A model part without floating point: each layer answers a token with a hash of all it reads through the tables. One wrong page, one
 * stale token, a snapshot of another count, and the answer is another one. It runs on `HostPageDevice`, does with every layout, and
 * is what consumers for a GPU can be compared with.
 *
 * An attention layer writes 8 bytes a token into each of its buffers, whatever their roles. A recurrent layer has `ssm_state` (16
 * bytes or more), and may have `conv_state` (the last three inputs, 16 bytes or more) and `replay_ring` (the states before the last
 * tokens, 24 bytes each): with the ring it can rewind so many tokens.
 */
export class HashConsumer implements ConsumerAdapter<HashWork> {
  readonly specVersion = 'v1';
  readonly name = 'hash consumer';
  readonly supports = {
    splitBuffers: true,
    scratch: true,
    crossingScratch: true,
    partialBlocks: true,
    snapshots: true,
    replay: true,
    rewind: true,
    beams: true,
  } as const;
  readonly layers: readonly LayerConfig[];
  #layout: StorageLayout | undefined;
  #closed = false;

  constructor(layers: readonly LayerConfig[]) {
    this.layers = layers;
  }

  bind(layout: StorageLayout, options?: BindOptions): void {
    this.#checkOpen();
    checkLayout(this, layout, options);
    this.#layout = layout;
  }

  planReplay(reuseStatus: readonly GroupReuseStatus[], matched: number): ReplayPlan {
    const layout = this.#bound();
    return usualReplay(reuseStatus, matched, (groupId) => this.#neededFrom(layout, groupId, matched));
  }

  record(step: ConsumerStep, { inputs, outputs }: HashWork): void {
    this.#checkOpen();
    const layout = this.#bound();
    for (const output of outputs) output.fill(0);
    for (const layer of this.layers) {
      const part = layer.type === 'attention' ? new HashAttention(layout, layer, step) : new HashRecurrence(layout, layer, step);
      // First everybody writes, then everybody reads: as kernels do.
      for (const [row, request] of step.requests.entries()) part.write(request, row, inputs[row]);
      for (const [row, request] of step.requests.entries()) part.read(request, row, inputs[row], outputs[row]);
    }
  }

  close(): void {
    this.#closed = true;
  }

  #neededFrom(layout: StorageLayout, groupId: LayerGroupId, matched: number): number {
    const lifecycle = layout.lifecycles.get(groupId);
    if (lifecycle.kind === 'attention') return firstLiveToken(lifecycle, matched, layout.tokensPerBlock);
    const own = this.layers.flatMap(({ layerId }) =>
      layout.lifecycles.bufferGrouping[groupId].filter((id) => id.layerId === layerId),
    );
    const from: number[] = own.map(({ role }) => HashRecurrence.neededFrom(role, matched));
    return Math.min(matched, ...from);
  }

  #bound(): StorageLayout {
    if (this.#layout === undefined)
      throw new AdapterError('step-refused', `${this.name} knows no layout yet; call \`bind\` first`);
    return this.#layout;
  }

  #checkOpen(): void {
    if (this.#closed) throw new AdapterError('plugin-closed', `${this.name} was closed; make a new one`);
  }
}
