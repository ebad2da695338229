import {
  AdapterError,
  type BindOptions,
  type ConsumerAdapter,
  type ConsumerStep,
  checkLayout,
  firstLiveToken,
  type ReplayPlan,
  usualReplay,
} from '@bufferwise/adapter-kit';
import type { GroupReuseStatus } from '@bufferwise/cache-manager';
import type { LayerConfig } from '@bufferwise/core-policy';
import {
  type ComputeContext,
  type ComputeStep,
  PagedAttention,
  type PagedAttentionOptions,
  pageWriteKernels,
  quantisedPageWriteKernel,
} from '@bufferwise/gpu-kernels';
import type { StorageLayout } from '@bufferwise/scratch-allocator';
import { type AttentionLayer, attentionLayerConfig, shapeOf } from './attention-layer.ts';
import { type AttentionRows, type AttentionStep, RecordedAttentionStep } from './attention-step.ts';
import { type BoundLayers, bindLayers } from './bound-layers.ts';
import { TokenTables } from './token-tables.ts';

export interface AttentionConsumerOptions {
  /** The attention layers of a model, each id once. */
  readonly layers: readonly AttentionLayer[];
  /** As in the config of the cache. */
  readonly tokensPerBlock: number;
  /** For people, in messages. Default `attention`. */
  readonly name?: string;
  /** How the kernels are cut and which features they use. Default: as the device has them. */
  readonly kernels?: PagedAttentionOptions;
}

/** What `record` computes on. */
export interface AttentionWork {
  /** Takes the commands. Whoever made it submits it. */
  readonly compute: ComputeStep;
  /** Asked once for each layer. */
  rows(layerId: number): AttentionRows;
}

/**
 * The attention layers of a model on WebGPU. Each buffer is read and written through an index table of its own, so that keys and values
 * of a layer may be in different groups, page sizes and pools.
 *
 * Engines call `begin` once a step and `layer` between their own work; `record` does both for engines that have the rows of all layers
 * at once. Kernels are shared by layers of equal shapes.
 */
export class AttentionConsumer implements ConsumerAdapter<AttentionWork> {
  readonly specVersion = 'v1';
  readonly name: string;
  readonly supports = {
    splitBuffers: true,
    scratch: true,
    crossingScratch: true,
    partialBlocks: true,
    snapshots: false,
    replay: true,
    rewind: true,
    beams: true,
  } as const;
  readonly layers: readonly LayerConfig[];
  readonly #context: ComputeContext;
  readonly #tokensPerBlock: number;
  readonly #parts: readonly { layer: AttentionLayer; attention: PagedAttention }[];
  readonly #attentions: ReadonlyMap<string, PagedAttention>;
  readonly #tokenTables = new TokenTables();
  #bound: BoundLayers | undefined;
  #closed = false;

  /**
   * @throws {AdapterError} `layout-refused` as `attentionLayerConfig`, or on a layer that is there twice; {KernelError} `kernel-dispatch` when
   *   the kernels do not serve the shape of a layer. Nothing was made then
   */
  constructor(context: ComputeContext, { layers, tokensPerBlock, name = 'attention', kernels }: AttentionConsumerOptions) {
    this.name = name;
    this.#context = context;
    this.#tokensPerBlock = tokensPerBlock;
    requireOnce(name, layers);
    this.layers = layers.map((layer) => attentionLayerConfig(layer, tokensPerBlock));
    const attentions = new Map<string, PagedAttention>();
    this.#parts = layers.map((layer) => {
      const shape = shapeOf(layer);
      const key = JSON.stringify(shape);
      const attention = attentions.get(key) ?? new PagedAttention(context, shape, kernels);
      attentions.set(key, attention);
      return { layer, attention };
    });
    this.#attentions = attentions;
  }

  /** Compiles ahead of the first step. */
  async warmUp(): Promise<void> {
    const storages = new Set(this.#parts.map(({ layer: { storage } }) => storage ?? 'f32'));
    await Promise.all([
      ...[...this.#attentions.values()].map((attention) => attention.warmUp()),
      ...(storages.has('f32') ? [this.#context.warmUp(pageWriteKernels.vec4f)] : []),
      ...(storages.has('f16') ? [this.#context.warmUp(pageWriteKernels.f16vec4)] : []),
      ...(storages.has('int8') ? [this.#context.warmUp(quantisedPageWriteKernel)] : []),
    ]);
  }

  /**
   * @throws {AdapterError} `layout-refused` when a buffer is missing, has other pages than the layer's or does not keep what the layer reads, or is
   *   apart from its scales. `plugin-closed`
   */
  bind(layout: StorageLayout, options?: BindOptions): void {
    this.#requireOpen();
    checkLayout(this, layout, options);
    this.#bound = bindLayers(this, layout, this.#parts, this.#tokensPerBlock);
  }

  /**
   * Uses the optional groups that are complete, and has the others and the private ones filled again: from the first token that a later one reads in
   * them. Names only groups of its own buffers, so the plans of several consumers are joined by all their groups and the smallest `from`.
   *
   * The plan is about pages. Rows of a deeper layer are right only if what the layers above it read was there: where windows have moved on,
   * an engine begins earlier than `from`, by a window for each layer. What has no page any more is then not written.
   *
   * @throws {AdapterError} `step-refused` before `bind`
   */
  planReplay(reuseStatus: readonly GroupReuseStatus[], matched: number): ReplayPlan {
    const { layout, groupIds } = this.#requireBound();
    const own = reuseStatus.filter(({ groupId }) => groupIds.includes(groupId));
    return usualReplay(own, matched, (groupId) => firstLiveToken(layout.lifecycles.get(groupId), matched, layout.tokensPerBlock));
  }

  /**
   * Begins a step: uploads once what its layers share (places, query starts, context lengths, page tables). When every request has one token the
   * layers run as decode, else as prefill, which is right for requests of any length together.
   *
   * @param compute takes the commands of all layers, and the upload
   * @throws {AdapterError} `step-refused` before `bind`, with tables of another layout or for other requests, or when pages are in no WebGPU memory;
   *   `plugin-closed`. {StateError} when the tables lack a buffer. Nothing was uploaded then
   */
  begin(step: ConsumerStep, compute: ComputeStep): AttentionStep {
    return this.#begin(step, compute);
  }

  /** `begin`, and all layers in their order. @throws as both; nothing was recorded then */
  record(step: ConsumerStep, { compute, rows }: AttentionWork): void {
    const begun = this.#begin(step, compute);
    const work = this.#parts.map(({ layer: { layerId } }) => ({ layerId, rows: rows(layerId) }));
    for (const { layerId, rows } of work) begun.check(layerId, rows);
    for (const { layerId, rows } of work) begun.layer(layerId, rows);
  }

  /** Frees the workspaces. Steps that were recorded must have been submitted. */
  close(): void {
    this.#closed = true;
    for (const attention of this.#attentions.values()) attention.destroy();
  }

  #begin(step: ConsumerStep, compute: ComputeStep): RecordedAttentionStep {
    this.#requireOpen();
    const bound = this.#requireBound();
    const { pages, requests } = step;
    if (pages.layout !== bound.layout)
      throw this.#stepRefused('its tables are of another layout than the one that was bound; bind to the layout of the manager');
    if (pages.numRequests !== requests.length)
      throw this.#stepRefused(`there are ${requests.length} requests and tables for ${pages.numRequests}`);
    return new RecordedAttentionStep(this.name, bound, step, compute, this.#tokenTables);
  }

  #requireBound(): BoundLayers {
    if (this.#bound === undefined) throw this.#stepRefused('it knows no layout yet; call `bind` first');
    return this.#bound;
  }

  #requireOpen(): void {
    if (this.#closed) throw new AdapterError('plugin-closed', `${this.name} was closed; make a new one`);
  }

  #stepRefused(why: string): AdapterError {
    return new AdapterError('step-refused', `${this.name} cannot do this step: ${why}`);
  }
}

function requireOnce(name: string, layers: readonly AttentionLayer[]): void {
  const seen = new Set<number>();
  for (const { layerId } of layers) {
    if (seen.has(layerId))
      throw new AdapterError('layout-refused', `${name} has layer ${layerId} twice; give each layer an id of its own`);
    seen.add(layerId);
  }
}
