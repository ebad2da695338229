import {
  AdapterError,
  type BindOptions,
  type ConsumerAdapter,
  type ConsumerStep,
  type ReplayPlan,
} from '@bufferwise/adapter-kit';
import type { GroupReuseStatus } from '@bufferwise/cache-manager';
import type { BufferId, LayerConfig, LayerGroupId } from '@bufferwise/core-policy';
import {
  type ComputeContext,
  type ComputeStep,
  type Mamba2MixerOperands,
  packReplay,
  type ReplayCursor,
  type ReplayRing,
  recordMamba2Mixer,
  recordMamba2Replay,
  type TailPages,
  warmUpMamba2,
} from '@bufferwise/gpu-kernels';
import type { StorageLayout } from '@bufferwise/scratch-allocator';
import { BoundLayout } from '../bound-layout.ts';
import { checkLegacyLayout } from '../check-legacy-layout.ts';
import { planLayers } from '../replay.ts';
import { type LegacyMambaLayer, mambaLayerConfig, tailRows } from './mamba-layer.ts';
import { StateTables } from './state-tables.ts';

/** What one layer of a step reads and writes besides pages: the operands of the mixer but for its requests and pages. */
export type LegacyMambaRows = Readonly<Omit<Mamba2MixerOperands, 'requests' | 'tail' | 'state'>>;

/** A step whose tables are uploaded: layers may be recorded now, each once, in the order of the model. */
export interface LegacyMambaStep {
  /**
   * Records a layer between its projections: convolution, then the recurrence.
   *
   * @throws {AdapterError} `step-refused` for a layer of somebody else, {KernelError} when rows do not fit the layer's shape
   */
  layer(layerId: number, rows: LegacyMambaRows): void;
}

export interface LegacyMambaWork {
  readonly compute: ComputeStep;
  /** See `LegacyMambaConsumer.begin`. */
  readonly cursors?: readonly ReplayCursor[];
  rows(layerId: number): LegacyMambaRows;
}

export interface LegacyMambaOptions {
  readonly layers: readonly LegacyMambaLayer[];
  /** With it every layer has a replay ring, of the layer's own policy: it is not made private. Default: none. */
  readonly ring?: ReplayRing;
}

/**
 * Mamba-2 as engines do it that know layers and no buffers: recurrent state, convolution tail and replay ring of a layer share its group,
 * and one index a request finds all three, in all layers of the group.
 *
 * Without cursors every step leaves the state as it is behind its last token. With them (`begin`) it replays: the state stays a
 * checkpoint and tokens go to the ring, so that drafts can be taken back. Cursors are the engine's, as it alone knows what it kept.
 */
export class LegacyMambaConsumer implements ConsumerAdapter<LegacyMambaWork> {
  readonly specVersion = 'v1';
  readonly name = 'legacy Mamba';
  readonly supports = {
    splitBuffers: false,
    scratch: false,
    crossingScratch: false,
    partialBlocks: true,
    snapshots: true,
    replay: true,
    /** Not by a smaller `start` alone: drafts are taken back through cursors. */
    rewind: false,
    beams: true,
  } as const;
  readonly layers: readonly LayerConfig[];
  readonly #context: ComputeContext;
  readonly #ring: ReplayRing | undefined;
  readonly #byId: ReadonlyMap<number, LegacyMambaLayer>;
  readonly #bound = new BoundLayout(this.name);
  #sources: ReadonlyMap<LayerGroupId, BufferId> = new Map();

  /** @throws {KernelError} `kernel-dispatch` for a shape that the kernels do not serve, `kernel-layout` for a ring that is too short */
  constructor(context: ComputeContext, { layers, ring }: LegacyMambaOptions) {
    this.#context = context;
    this.#ring = ring;
    this.layers = layers.map((layer) => mambaLayerConfig(layer, ring));
    this.#byId = new Map(layers.map((layer) => [layer.layerId, layer]));
  }

  /** Compiles the kernels ahead of the first step. */
  async warmUp(): Promise<void> {
    const ring = this.#ring;
    await Promise.all(
      [...this.#byId.values()].map((layer) =>
        warmUpMamba2(this.#context, layer, ring === undefined ? {} : { replay: { ring, tailRows: tailRows(layer, ring) } }),
      ),
    );
  }

  /**
   * @throws {AmbiguousLayerError} for a split layer; {AdapterError} `layout-refused` for every other layout that it cannot read,
   *   `plugin-closed`. It is as before then
   */
  bind(layout: StorageLayout, options: BindOptions = {}): void {
    this.#bound.checkOpen();
    checkLegacyLayout(this, undefined, layout, options);
    if (this.#ring !== undefined) this.#checkRings(layout);
    const sources = new Map<LayerGroupId, BufferId>();
    for (const { layerId, buffers } of this.layers) {
      const groupId = layout.lifecycles.getLayerGroupId(layerId);
      if (!sources.has(groupId)) sources.set(groupId, { layerId, role: buffers[0].role });
    }
    this.#sources = sources;
    this.#bound.set(layout);
  }

  /** The buffers whose rows it reads: one for each layer group. `StepPages` of these alone do. As of the last `bind`. */
  get tableBuffers(): readonly BufferId[] {
    return [...this.#sources.values()];
  }

  /** The usual plan for the groups of its layers: state that is not reused is computed again from the first token. */
  planReplay(reuseStatus: readonly GroupReuseStatus[], matched: number): ReplayPlan {
    return planLayers(this.#bound.get(), this.layers, reuseStatus, matched);
  }

  /**
   * Uploads what the layers of a step share, and returns what records one.
   *
   * @param cursors where each request is in its ring. With them all requests replay, at most `ring.maxTokens` tokens each; afterwards the
   *   engine moves them on by `afterReplay` of `@bufferwise/gpu-kernels`. A request begins with `{ position, length: 0 }`. Left out: the
   *   state itself is moved on, and rings must be empty: `settle` first
   * @throws {AdapterError} `step-refused` before `bind`, for tables of another layout or of other requests, for cursors without a ring,
   *   and for cursors that do not fit the requests;
   *   {KernelError} `kernel-dispatch` when tokens do not fit the ring; `plugin-closed`
   */
  begin(step: ConsumerStep, compute: ComputeStep, cursors?: readonly ReplayCursor[]): LegacyMambaStep {
    const layout = this.#bound.getFor(step);
    if (cursors !== undefined) {
      this.#checkCursors(step, cursors);
      const counts = step.requests.map(({ numTokens }) => numTokens);
      return this.#replayStep(layout, step, compute, cursors, counts, false);
    }
    const tables = new StateTables(layout, step, compute, this.#sources);
    return {
      layer: (layerId, rows) => {
        const layer = this.#layer(layerId);
        const { requests, slots, positions } = tables.group(layout.lifecycles.getLayerGroupId(layerId));
        const pageIndex = { buffer: slots };
        const ring = this.#ring;
        const tail: TailPages = {
          ...tables.pool(layerId, 'conv_state'),
          pageIndex,
          ...(ring === undefined ? {} : { ring: { rows: tailRows(layer, ring), positions } }),
        };
        const state = { ...tables.pool(layerId, 'ssm_state'), pageIndex };
        recordMamba2Mixer(compute, layer, { ...rows, requests, tail, state });
      },
    };
  }

  /**
   * Brings the state of every request up to its ring, and computes no token: before a step without cursors, and before a commit that
   * takes a snapshot (commit with `snapshot: false` in between). Each layer is recorded as in a step; of its rows nothing is read or
   * written. Cursors then have length 0: `afterReplay(cursor, true, 0)`.
   *
   * @param step whose requests are the ones to settle; their tokens do not count
   * @throws {AdapterError} as `begin`
   */
  settle(step: ConsumerStep, compute: ComputeStep, cursors: readonly ReplayCursor[]): LegacyMambaStep {
    const layout = this.#bound.getFor(step);
    this.#checkCursors(step, cursors);
    return this.#replayStep(layout, step, compute, cursors, new Uint32Array(cursors.length), true);
  }

  record(step: ConsumerStep, { compute, rows, cursors }: LegacyMambaWork): void {
    const begun = this.begin(step, compute, cursors);
    for (const { layerId } of this.layers) begun.layer(layerId, rows(layerId));
  }

  close(): void {
    this.#bound.close();
  }

  #replayStep(
    layout: StorageLayout,
    step: ConsumerStep,
    compute: ComputeStep,
    cursors: readonly ReplayCursor[],
    counts: ArrayLike<number>,
    settle: boolean,
  ): LegacyMambaStep {
    const ring = this.#ring as ReplayRing;
    const replay = packReplay(compute, ring, counts, cursors, () => settle);
    const tables = new StateTables(layout, step, compute, this.#sources);
    return {
      layer: (layerId, rows) => {
        const layer = this.#layer(layerId);
        const pageIndex = { buffer: tables.slots(layout.lifecycles.getLayerGroupId(layerId)) };
        recordMamba2Replay(compute, layer, {
          ...rows,
          replay,
          tail: { ...tables.pool(layerId, 'conv_state'), pageIndex },
          tailRows: tailRows(layer, ring),
          state: { ...tables.pool(layerId, 'ssm_state'), pageIndex },
          ring: { ...tables.pool(layerId, 'replay_ring'), pageIndex },
        });
      },
    };
  }

  #checkCursors({ requests }: ConsumerStep, cursors: readonly ReplayCursor[]): void {
    if (this.#ring === undefined) throw this.#bound.refused('it was made without a ring, and cursors are places in one');
    if (cursors.length !== requests.length)
      throw this.#bound.refused(`${requests.length} requests have ${cursors.length} cursors; give each one`);
    requests.forEach(({ start, matched }, i) => {
      if (cursors[i].position !== start)
        throw this.#bound.refused(`request ${i} starts at ${start}, and its cursor is at ${cursors[i].position}`);
      if (start < matched)
        throw this.#bound.refused(`request ${i} gives tokens again from ${start} on; do that in a step without cursors`);
    });
  }

  /** A step from the ring writes state and ring in one dispatch, to which WebGPU binds no memory twice. */
  #checkRings(layout: StorageLayout): void {
    for (const { layerId } of this.layers) {
      const [state, ring] = [layout.bufferAttr(layerId, 'ssm_state'), layout.bufferAttr(layerId, 'replay_ring')];
      if (state.poolGroup !== ring.poolGroup || state.pool !== ring.pool) continue;
      const message = `${this.name} cannot read this layout: state and replay ring of layer ${layerId} share a slot, and one dispatch writes both; give them coalescing groups of their own`;
      throw new AdapterError('layout-refused', message);
    }
  }

  #layer(layerId: number): LegacyMambaLayer {
    const layer = this.#byId.get(layerId);
    if (layer === undefined) throw this.#bound.refused(`it has no layer ${layerId}; give it to the constructor`);
    return layer;
  }
}
