import {
  AdapterError,
  type BindOptions,
  type ConsumerAdapter,
  type ConsumerStep,
  checkLayout,
  type ReplayPlan,
  usualReplay,
} from '@bufferwise/adapter-kit';
import type { GroupReuseStatus } from '@bufferwise/cache-manager';
import type { LayerConfig, LayerGroupId } from '@bufferwise/core-policy';
import { type ComputeContext, type ComputeStep, warmUpMamba2 } from '@bufferwise/gpu-kernels';
import type { StorageLayout } from '@bufferwise/scratch-allocator';
import { BoundLayer } from './bound-layer.ts';
import { type Mamba2Layer, mamba2LayerConfig, tailRows } from './mamba2-layer.ts';
import { type Mamba2Rows, type Mamba2Step, RecordedStep } from './mamba2-step.ts';
import { ReplayCursors } from './replay-cursors.ts';
import { recordSettling } from './settle.ts';
import { SidePages } from './side-pages.ts';
import { checkBeams, noteRing, planAsides, planRing, planSettling, type RingPlan } from './step-plan.ts';

export interface Mamba2ConsumerOptions {
  /** In the order in which the model has them. */
  readonly layers: readonly Mamba2Layer[];
}

/** What `record` computes: all layers, one after the other. */
export interface Mamba2Work {
  readonly compute: ComputeStep;
  /** What a layer works on. */
  rows(layerId: number): Mamba2Rows;
}

interface Bound {
  readonly layout: StorageLayout;
  readonly layers: ReadonlyMap<number, BoundLayer>;
}

const STORAGE = 0x80;

/**
 * The Mamba-2 layers of a model, on pages: state, convolution tail and replay ring of a layer have an index table and a policy each.
 *
 * A step that is recorded is to be submitted before the next one begins: where a sequence is in its ring is noted when a step begins.
 */
export class Mamba2Consumer implements ConsumerAdapter<Mamba2Work> {
  readonly specVersion = 'v1';
  readonly name = 'Mamba-2 consumer';
  readonly supports: ConsumerAdapter['supports'];
  readonly layers: readonly LayerConfig[];
  readonly #context: ComputeContext;
  readonly #mamba2Layers: readonly Mamba2Layer[];
  readonly #cursors = new Map<string, ReplayCursors>();
  readonly #sidePages: SidePages;
  #bound: Bound | undefined;
  #nowhere: GPUBuffer | undefined;
  #closed = false;

  /** @throws {KernelError} on a layer whose shape or ring the kernels do not serve */
  constructor(context: ComputeContext, { layers }: Mamba2ConsumerOptions) {
    this.#context = context;
    this.#mamba2Layers = layers;
    this.layers = layers.map(mamba2LayerConfig);
    this.#sidePages = new SidePages(context.device);
    this.supports = {
      splitBuffers: true,
      // It has no blocks, so none of them is ever scratch.
      scratch: false,
      crossingScratch: false,
      partialBlocks: true,
      snapshots: true,
      replay: true,
      rewind: layers.every(({ replay }) => replay !== undefined),
      beams: true,
    };
    for (const layer of layers) if (layer.replay) this.#cursors.set(ringKey(layer), new ReplayCursors(layer.replay));
  }

  /** Compiles what its layers run, ahead of the first step. */
  async warmUp(): Promise<void> {
    await Promise.all(
      this.#mamba2Layers.map((layer) => {
        const { replay: ring } = layer;
        return warmUpMamba2(this.#context, layer, ring && { replay: { ring, tailRows: tailRows(layer) } });
      }),
    );
  }

  bind(layout: StorageLayout, options?: BindOptions): void {
    this.#checkOpen();
    checkLayout(this, layout, options);
    const layers = new Map(this.#mamba2Layers.map((layer) => [layer.layerId, new BoundLayer(layer, layout)]));
    this.#bound = { layout, layers };
  }

  /**
   * Uses what optional groups are complete, and asks for the rest again. A state needs all tokens. So does the tail of any layer but
   * the first: its inputs come out of layers whose state before the match is nowhere any more. A ring needs none. Groups of other
   * consumers are left to them.
   */
  planReplay(reuseStatus: readonly GroupReuseStatus[], matched: number): ReplayPlan {
    const { layers } = this.#requireLayout();
    const needed = new Map<LayerGroupId, number>();
    const need = (groupId: LayerGroupId, from: number) => needed.set(groupId, Math.min(from, needed.get(groupId) ?? matched));
    for (const [i, { layerId, convWidth, replay }] of this.#mamba2Layers.entries()) {
      const bound = layers.get(layerId) as BoundLayer;
      need(bound.groupOf('ssm_state'), 0);
      need(bound.groupOf('conv_state'), i === 0 ? Math.max(0, matched - (convWidth - 1)) : 0);
      if (replay) need(bound.groupOf('replay_ring'), matched);
    }
    const own = reuseStatus.filter(({ groupId }) => needed.has(groupId));
    return usualReplay(own, matched, (groupId) => needed.get(groupId) as number);
  }

  /**
   * Begins a step: uploads what its layers share, and returns what records a layer. All layers are to be recorded, in any order.
   *
   * @throws {AdapterError} `step-refused` before `bind`, and when a request begins where its last step did not leave it; nothing was
   *   recorded then. `plugin-closed`
   */
  begin(step: ConsumerStep, compute: ComputeStep): Mamba2Step {
    const { layers } = this.#requireBound();
    checkBeams(this.name, step);
    const plans = new Map([...this.#cursors].map(([key, cursors]) => [key, planRing(this.name, cursors, step)]));
    this.#sidePages.beginStep();
    const asides = planAsides(this.name, [...layers.values()], this.#sidePages, step);
    for (const [key, plan] of plans) {
      this.#settle(step, compute, key, plan.settled);
      noteRing(plan, step);
    }
    for (const [row, aside] of asides.entries()) {
      if (aside === undefined) continue;
      this.#sidePages.advance(aside.sequence, step.requests[row].start + step.requests[row].numTokens);
      if (!aside.writes) this.#sidePages.leave(aside.sequence);
    }
    const ringOf = ({ layer }: BoundLayer): RingPlan | undefined => plans.get(ringKey(layer));
    return new RecordedStep({ name: this.name, step, compute, layers, ringOf, asides, sidePages: this.#sidePages });
  }

  record(step: ConsumerStep, { compute, rows }: Mamba2Work): void {
    const recorded = this.begin(step, compute);
    for (const { layerId } of this.#mamba2Layers) recorded.layer(layerId, rows(layerId));
  }

  /**
   * Brings the state pages of requests up to their rings: each then holds the state after exactly its first `start` tokens, and nothing
   * before can be taken back. To be submitted before a commit with a snapshot that follows steps with `snapshot: false`, and before a
   * fork. Requests whose pages are that far already, or that have no ring, cost nothing.
   *
   * @param step `start` is what is kept of each request; its tokens are not looked at
   * @throws {AdapterError} as `begin`
   */
  settle(step: ConsumerStep, compute: ComputeStep): void {
    this.#requireBound();
    const plans = [...this.#cursors].map(([key, cursors]) => ({ key, cursors, settled: planSettling(this.name, cursors, step) }));
    for (const { key, cursors, settled } of plans) {
      this.#settle(step, compute, key, settled);
      for (const { sequence, start } of step.requests) if (sequence) cursors.wrote(sequence, start);
    }
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#sidePages.destroy();
    this.#nowhere?.destroy();
  }

  #settle(step: ConsumerStep, compute: ComputeStep, key: string, settled: RingPlan['settled']): void {
    const { layers: all } = this.#requireBound();
    const { ring } = this.#cursors.get(key) as ReplayCursors;
    const layers = [...all.values()].filter(({ layer }) => ringKey(layer) === key);
    this.#nowhere ??= this.#context.device.createBuffer({ label: 'bufferwise nothing', size: 4, usage: STORAGE });
    recordSettling(compute, step, { layers, ring, settled, nowhere: this.#nowhere });
  }

  #requireBound(): Bound {
    this.#checkOpen();
    return this.#requireLayout();
  }

  #requireLayout(): Bound {
    if (this.#bound) return this.#bound;
    throw new AdapterError('step-refused', `${this.name} knows no layout yet; call \`bind\` first`);
  }

  #checkOpen(): void {
    if (this.#closed) throw new AdapterError('plugin-closed', `${this.name} was closed; make a new one`);
  }
}

/** Rings of one size are at the same place for a sequence. */
function ringKey({ replay }: Mamba2Layer): string {
  return replay ? `${replay.rows} ${replay.maxTokens} ${replay.dtype ?? 'f32'}` : '';
}
