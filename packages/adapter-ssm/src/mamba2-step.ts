import { AdapterError, type ConsumerStep } from '@bufferwise/adapter-kit';
import type { LayerGroupId } from '@bufferwise/core-policy';
import {
  type ComputeStep,
  type Mamba2MixerOperands,
  type PackedRequests,
  type PagePool,
  packReplay,
  packRequests,
  type ReplayRequests,
  type RequestPages,
  recordCausalConv,
  recordSsm,
  recordSsmReplay,
  type TokenRows,
  type Words,
} from '@bufferwise/gpu-kernels';
import type { BoundLayer } from './bound-layer.ts';
import type { Mamba2Role } from './mamba2-layer.ts';
import type { SidePages } from './side-pages.ts';
import { partsOf, runsOf, type StepPart } from './step-parts.ts';
import type { AsidePlan, RingPlan } from './step-plan.ts';

/** What a layer works on between its projections, besides pages: all tokens of the step, row by row, in the order of its requests. */
export interface Mamba2Rows
  extends Pick<Mamba2MixerOperands, 'projection' | 'convWeight' | 'convBias' | 'headParams' | 'xBC' | 'y'> {}

/** A step that is being recorded. */
export interface Mamba2Step {
  /**
   * Adds what a layer does between its projections: convolution, then the recurrence.
   *
   * @throws {AdapterError} `step-refused` for a layer that the consumer does not have. {KernelError} when an operand does not fit; the
   *   step is to be dropped then, and its requests begun anew
   */
  layer(layerId: number, rows: Mamba2Rows): void;
}

/** Parts that are one dispatch. */
interface Call {
  readonly parts: readonly StepPart[];
  readonly requests: PackedRequests;
  /** Set when its pages are those of one request's own. */
  readonly aside: AsidePlan | undefined;
}

interface TailCall extends Call {
  /** Position of the first token of each part. */
  readonly positions: Words;
}

interface StateCall extends Call {
  readonly replay: ReplayRequests | undefined;
}

/** Records the layers of one step. What layers have in common is uploaded once. */
export class RecordedStep implements Mamba2Step {
  readonly #name: string;
  readonly #step: ConsumerStep;
  readonly #compute: ComputeStep;
  readonly #layers: ReadonlyMap<number, BoundLayer>;
  readonly #ringOf: (layer: BoundLayer) => RingPlan | undefined;
  readonly #asides: readonly (AsidePlan | undefined)[];
  readonly #sidePages: SidePages;
  readonly #tailCalls = new Map<LayerGroupId, TailCall[]>();
  readonly #stateCalls = new Map<RingPlan | undefined, Map<LayerGroupId, StateCall[]>>();

  constructor(of: {
    name: string;
    step: ConsumerStep;
    compute: ComputeStep;
    layers: ReadonlyMap<number, BoundLayer>;
    ringOf: (layer: BoundLayer) => RingPlan | undefined;
    asides: readonly (AsidePlan | undefined)[];
    sidePages: SidePages;
  }) {
    this.#name = of.name;
    this.#step = of.step;
    this.#compute = of.compute;
    this.#layers = of.layers;
    this.#ringOf = of.ringOf;
    this.#asides = of.asides;
    this.#sidePages = of.sidePages;
  }

  layer(layerId: number, rows: Mamba2Rows): void {
    const layer = this.#layers.get(layerId);
    if (layer === undefined) throw new AdapterError('step-refused', `${this.#name} has no layer ${layerId}`);
    for (const call of this.#tailCallsOf(layer)) this.#recordConvolution(layer, call, rows);
    for (const call of this.#stateCallsOf(layer)) this.#recordRecurrence(layer, call, rows);
  }

  #recordConvolution(bound: BoundLayer, call: TailCall, rows: Mamba2Rows): void {
    const { layer, sizes, tailRows } = bound;
    const [{ firstToken }] = call.parts;
    const ring = layer.replay ? { rows: tailRows, positions: call.positions } : undefined;
    recordCausalConv(
      this.#compute,
      { numChannels: sizes.numChannels, width: layer.convWidth },
      {
        requests: call.requests,
        input: shifted(rows.projection, firstToken, sizes.projection.xBC),
        weight: rows.convWeight,
        bias: rows.convBias,
        tail: { ...this.#pages(bound, 'conv_state', call, tailRows * sizes.numChannels), ring },
        output: shifted(rows.xBC, firstToken),
      },
    );
  }

  #recordRecurrence(bound: BoundLayer, call: StateCall, rows: Mamba2Rows): void {
    const { layer, sizes } = bound;
    const [{ firstToken }] = call.parts;
    const operands = {
      xBC: shifted(rows.xBC, firstToken),
      dt: shifted(rows.projection, firstToken, sizes.projection.dt),
      headParams: rows.headParams,
      state: this.#pages(bound, 'ssm_state', call, sizes.stateWords),
      y: shifted(rows.y, firstToken),
    };
    const { replay, requests } = call;
    if (replay === undefined) recordSsm(this.#compute, layer, { ...operands, requests });
    else recordSsmReplay(this.#compute, layer, { ...operands, replay, ring: this.#pages(bound, 'replay_ring', call, 0) });
  }

  /** Whose pages the parts of a call read and write. */
  #pages(bound: BoundLayer, role: Mamba2Role, { parts, aside }: Call, pageWords: number): RequestPages {
    if (aside) {
      const pool = this.#sidePages.page(aside.sequence, `${bound.layer.layerId} ${role}`, 4 * pageWords);
      const side = { pool, baseWords: 0, strideWords: pageWords };
      return this.#indexed(side, [aside.reads ? 0 : -1], [aside.writes ? 0 : -1]);
    }
    const targets = parts.map(({ page, request }) => (page === 'own' ? bound.pageIndex(this.#step, role, request) : -1));
    // Before token 0 there is nothing, whatever the page holds.
    const sources = parts.map(({ position }, i) => (position === 0 ? -1 : targets[i]));
    return this.#indexed(bound.pool(this.#step, role), sources, targets);
  }

  #indexed(pool: PagePool, sources: readonly number[], targets: readonly number[]): RequestPages {
    const buffer = this.#compute.upload(Int32Array.from([...sources, ...targets]));
    return { ...pool, pageIndex: { buffer }, targetIndex: { buffer, offsetWords: sources.length } };
  }

  #tailCallsOf(layer: BoundLayer): readonly TailCall[] {
    const groupId = layer.groupOf('conv_state');
    const known = this.#tailCalls.get(groupId);
    if (known) return known;
    const calls = runsOf(this.#partsIn(groupId), (part) => this.#asideOf(part)).map((parts) => ({
      ...this.#callOf(parts),
      positions: { buffer: this.#compute.upload(Uint32Array.from(parts, ({ position }) => position)) },
    }));
    this.#tailCalls.set(groupId, calls);
    return calls;
  }

  #stateCallsOf(layer: BoundLayer): readonly StateCall[] {
    const ring = this.#ringOf(layer);
    const ofRing = this.#stateCalls.get(ring) ?? new Map<LayerGroupId, StateCall[]>();
    this.#stateCalls.set(ring, ofRing);
    const groupId = layer.groupOf('ssm_state');
    const known = ofRing.get(groupId);
    if (known) return known;
    const cursorOf = ({ request }: StepPart) => ring?.replayed[request];
    const calls = runsOf(this.#partsIn(groupId), (part) => this.#asideOf(part) ?? cursorOf(part) !== undefined).map((parts) => {
      const cursors = parts.flatMap((part) => cursorOf(part) ?? []);
      if (ring === undefined || cursors.length === 0) return { ...this.#callOf(parts), replay: undefined };
      const replay = packReplay(this.#compute, ring.cursors.ring, tokensOf(parts), cursors);
      return { parts, aside: undefined, requests: replay.requests, replay };
    });
    ofRing.set(groupId, calls);
    return calls;
  }

  #partsIn(groupId: LayerGroupId): StepPart[] {
    return partsOf(this.#step.requests, ({ reusedGroups }) => reusedGroups.has(groupId));
  }

  #asideOf({ page, request }: StepPart): AsidePlan | undefined {
    return page === 'aside' ? this.#asides[request] : undefined;
  }

  #callOf(parts: readonly StepPart[]): Call {
    return { parts, requests: packRequests(this.#compute, tokensOf(parts)), aside: this.#asideOf(parts[0]) };
  }
}

const tokensOf = (parts: readonly StepPart[]) => parts.map(({ numTokens }) => numTokens);

/** Rows from a later token on, and from a later word of each. */
function shifted(rows: TokenRows, firstToken: number, word = 0): TokenRows {
  return { ...rows, offsetWords: rows.offsetWords + firstToken * rows.strideWords + word };
}
