import type { BindOptions, ConsumerAdapter, ConsumerStep, ReplayPlan } from '@bufferwise/adapter-kit';
import type { GroupReuseStatus } from '@bufferwise/cache-manager';
import type { BufferId, LayerConfig, LayerGroupId } from '@bufferwise/core-policy';
import {
  type ComputeContext,
  type ComputeStep,
  type KvPages,
  PagedAttention,
  recordPageWrite,
  recordQuantisedPageWrite,
  type StepData,
  type TokenRows,
} from '@bufferwise/gpu-kernels';
import type { StorageLayout } from '@bufferwise/scratch-allocator';
import { BoundLayout } from '../bound-layout.ts';
import { checkLegacyLayout } from '../check-legacy-layout.ts';
import { planLayers } from '../replay.ts';
import { attentionLayerConfig, type LegacyAttentionLayer, type LegacyAttentionRole } from './attention-layer.ts';
import { firstOfLayer, LayerTables, pickRows } from './layer-tables.ts';
import { StepTokens } from './step-tokens.ts';

/** What one layer of a step reads and writes besides pages. Row t is token t of the step: requests one behind the other. */
export interface LegacyAttentionRows {
  /** `[numTokens, numQueryHeads × headDim] f32` */
  readonly queries: TokenRows;
  /** `[numTokens, numKvHeads × headDim] f32` */
  readonly keys: TokenRows;
  /** `[numTokens, numKvHeads × headDim] f32` */
  readonly values: TokenRows;
  /** `[numTokens, numQueryHeads × headDim] f32`, written. Another buffer than the others. */
  readonly output: GPUBuffer;
}

/** A step whose tables are uploaded: layers may be recorded now, each once, in the order of the model. */
export interface LegacyAttentionStep {
  /**
   * Records a layer: new keys and values go to their pages, then every query reads.
   *
   * @throws {AdapterError} `step-refused` for a layer of somebody else, {KernelError} when rows do not fit the layer's shape
   */
  layer(layerId: number, rows: LegacyAttentionRows): void;
}

export interface LegacyAttentionWork {
  readonly compute: ComputeStep;
  rows(layerId: number): LegacyAttentionRows;
}

export interface LegacyAttentionOptions {
  readonly layers: readonly LegacyAttentionLayer[];
  /** Tokens of a block, as in the config of the manager. */
  readonly tokensPerBlock: number;
}

/** What a layer was compiled to. */
interface CompiledLayer {
  readonly layer: LegacyAttentionLayer;
  readonly attention: PagedAttention;
}

/**
 * Attention as engines do it that know layers and no buffers: one group a layer, one table of slot ids a group. It is uploaded once a
 * step and read by all layers of the group, for keys, values and scales alike.
 *
 * A layer may have any policy and any window, but one for all its buffers: a split layer is refused in `bind`, where no page memory
 * exists yet. Scratch only where whole layer blocks lie in a slot; for such a step the tables are by layer (see `LayerTables`).
 */
export class LegacyAttentionConsumer implements ConsumerAdapter<LegacyAttentionWork> {
  readonly specVersion = 'v1';
  readonly name = 'legacy attention';
  readonly supports = {
    splitBuffers: false,
    scratch: true,
    crossingScratch: false,
    partialBlocks: true,
    snapshots: false,
    replay: true,
    rewind: true,
    beams: true,
  } as const;
  readonly layers: readonly LayerConfig[];
  readonly #tokensPerBlock: number;
  readonly #compiled = new Map<number, CompiledLayer>();
  readonly #bound = new BoundLayout(this.name);
  #sources: ReadonlyMap<LayerGroupId, BufferId> = new Map();
  #tableBuffers: readonly BufferId[] = [];
  #takesScratch = false;

  /** @throws {KernelError} `kernel-dispatch` when the kernels do not serve the shape of a layer */
  constructor(context: ComputeContext, { layers, tokensPerBlock }: LegacyAttentionOptions) {
    this.layers = layers.map((layer) => attentionLayerConfig(layer, tokensPerBlock));
    this.#tokensPerBlock = tokensPerBlock;
    const byShape = new Map<string, PagedAttention>();
    for (const layer of layers) {
      const { numQueryHeads, numKvHeads, headDim, scale, softCap, sinkScores, storage } = layer;
      const learnedSinks = sinkScores !== undefined;
      const shape = { numQueryHeads, numKvHeads, headDim, scale, softCap, learnedSinks, storage };
      const key = JSON.stringify(shape);
      const attention = byShape.get(key) ?? new PagedAttention(context, shape);
      byShape.set(key, attention);
      this.#compiled.set(layer.layerId, { layer, attention });
    }
  }

  /** Compiles the kernels ahead of the first step. */
  async warmUp(): Promise<void> {
    await Promise.all([...this.#attentions()].map((attention) => attention.warmUp()));
  }

  /**
   * @throws {AmbiguousLayerError} for a split layer; {AdapterError} `layout-refused` for every other layout that it cannot read,
   *   `plugin-closed`. It is as before then
   */
  bind(layout: StorageLayout, options: BindOptions = {}): void {
    this.#bound.checkOpen();
    checkLegacyLayout(this, this.#tokensPerBlock, layout, options);
    const sources = new Map<LayerGroupId, BufferId>();
    const byLayer = new Map<string, BufferId>();
    for (const { layerId, buffers } of this.layers) {
      const groupId = layout.lifecycles.getLayerGroupId(layerId);
      if (!sources.has(groupId)) sources.set(groupId, { layerId, role: buffers[0].role });
      const lifecycle = layout.lifecycles.get(groupId);
      if (!options.scratch || lifecycle.kind !== 'attention' || lifecycle.windowSize === null) continue;
      for (const { role } of buffers) {
        const first = firstOfLayer(layout, layerId, role);
        byLayer.set(`${first.layerId} ${first.role}`, first);
      }
    }
    const bySource = [...sources.values()].filter(({ layerId, role }) => !byLayer.has(`${layerId} ${role}`));
    this.#sources = sources;
    this.#tableBuffers = [...bySource, ...byLayer.values()];
    this.#takesScratch = options.scratch ?? false;
    this.#bound.set(layout);
  }

  /**
   * The buffers whose rows it reads: one for each layer group, and with scratch the first of each windowed layer and pool. `StepPages` of
   * these alone do, so that an engine makes and converts no table that nobody reads. As of the last `bind`.
   */
  get tableBuffers(): readonly BufferId[] {
    return this.#tableBuffers;
  }

  /** The usual plan for the groups of its layers. */
  planReplay(reuseStatus: readonly GroupReuseStatus[], matched: number): ReplayPlan {
    return planLayers(this.#bound.get(), this.layers, reuseStatus, matched);
  }

  /**
   * Uploads what the layers of a step share, and returns what records one.
   *
   * @throws {AdapterError} `step-refused` before `bind`, for tables of another layout or of other requests, and for scratch when it was
   *   bound without; `plugin-closed`. {StateError} when the tables lack one of `tableBuffers`. Nothing was uploaded then
   */
  begin(step: ConsumerStep, compute: ComputeStep): LegacyAttentionStep {
    const layout = this.#bound.getFor(step);
    // Asked before anything is uploaded, as it throws where the step has no such table.
    for (const { layerId, role } of this.#tableBuffers) step.pages.rowsAt(layerId, role);
    if (!this.#takesScratch) this.#checkNoScratch(step);
    const tables = new LayerTables(layout, step, compute, this.#sources);
    const tokens = new StepTokens(step.requests, compute);
    return { layer: (layerId, rows) => this.#record(layout, tables, tokens, compute, layerId, rows) };
  }

  record(step: ConsumerStep, { compute, rows }: LegacyAttentionWork): void {
    const begun = this.begin(step, compute);
    for (const { layerId } of this.layers) begun.layer(layerId, rows(layerId));
  }

  close(): void {
    if (!this.#bound.close()) return;
    for (const attention of this.#attentions()) attention.destroy();
  }

  #record(
    layout: StorageLayout,
    tables: LayerTables,
    tokens: StepTokens,
    compute: ComputeStep,
    layerId: number,
    rows: LegacyAttentionRows,
  ): void {
    const compiled = this.#compiled.get(layerId);
    if (compiled === undefined) throw this.#bound.refused(`it has no layer ${layerId}; give it to the constructor`);
    const { layer, attention } = compiled;
    const groupId = layout.lifecycles.getLayerGroupId(layerId);
    for (const [role, written] of [
      ['key', rows.keys],
      ['value', rows.values],
    ] as const) {
      if (layer.storage === 'int8') writeQuantised(compute, layer, tables, tokens, groupId, role, written);
      else write(compute, layer, tables, tokens, groupId, role, written);
    }
    const { queries, output } = rows;
    const { slidingWindowSize, numSinkTokens, sinkScores } = layer;
    const operands = {
      keys: kvPages(layer, tables, 'key'),
      values: kvPages(layer, tables, 'value'),
      queries: queries.buffer,
      queriesBaseWords: queries.offsetWords,
      queriesStrideWords: queries.strideWords,
      contextLength: tokens.queries.contextLength,
      output,
      numRequests: tokens.queries.numRequests,
      sinkScores,
      ...(slidingWindowSize === undefined ? {} : { slidingWindowSize, numSinkTokens }),
    };
    if (tokens.oneTokenEach) attention.decode(compute, { ...operands, maxContextLength: tokens.maxContextLength });
    else attention.prefill(compute, { ...operands, numTokens: tokens.numTokens, queryStart: tokens.queries.queryStart });
  }

  /** Blocks of scratch may cross slots in a layout that was bound without, and nobody has looked. */
  #checkNoScratch({ pages, requests }: ConsumerStep): void {
    for (const { layerId, role } of this.#sources.values()) {
      const request = requests.findIndex((_, i) => pages.scratchRange(layerId, role, i) !== null);
      if (request >= 0)
        throw this.#bound.refused(
          `request ${request} has scratch blocks, and it was bound without; call \`bind\` with \`scratch: true\``,
        );
    }
  }

  #attentions(): ReadonlySet<PagedAttention> {
    return new Set([...this.#compiled.values()].map(({ attention }) => attention));
  }
}

/** Pages of keys or values, with int8 also of their scales. `tableOf`: other tables for the same places. */
function kvPages(
  { layerId, storage }: LegacyAttentionLayer,
  tables: LayerTables,
  role: 'key' | 'value',
  tableOf: (role: LegacyAttentionRole) => StepData | undefined = () => undefined,
): KvPages {
  const scaleRole = `${role}_scale` as const;
  const scales = storage === 'int8' ? { scales: tables.pages(layerId, scaleRole, tableOf(scaleRole)) } : {};
  return { ...tables.pages(layerId, role, tableOf(role)), ...scales };
}

function write(
  compute: ComputeStep,
  { layerId, numKvHeads, headDim, storage }: LegacyAttentionLayer,
  tables: LayerTables,
  tokens: StepTokens,
  groupId: LayerGroupId,
  role: LegacyAttentionRole,
  rows: TokenRows,
): void {
  const { pool, table, tableStride, tokensPerPage, pageStrideWords, baseWords } = tables.pages(layerId, role);
  const shape = {
    numTokens: tokens.numTokens,
    tokensPerPage,
    tableStride,
    rowWords: numKvHeads * headDim,
    rowStrideWords: rows.strideWords,
    rowsBaseWords: rows.offsetWords,
    pageStrideWords,
    pagesBaseWords: baseWords,
    storage: storage === 'f16' ? ('f16' as const) : ('f32' as const),
  };
  recordPageWrite(compute, { shape, rows: rows.buffer, tokens: tokens.places(groupId), pageTable: table, pages: pool });
}

function writeQuantised(
  compute: ComputeStep,
  layer: LegacyAttentionLayer,
  tables: LayerTables,
  tokens: StepTokens,
  groupId: LayerGroupId,
  role: 'key' | 'value',
  rows: TokenRows,
): void {
  const { requests, queryStart, contextLength, numRequests } = tokens.written(groupId);
  const isWhole = requests.every((request, i) => request === i);
  const target = kvPages(layer, tables, role, (of) =>
    isWhole ? undefined : compute.upload(pickRows(tables.places(layer.layerId, of), requests)),
  );
  recordQuantisedPageWrite(compute, {
    target,
    numKvHeads: layer.numKvHeads,
    headDim: layer.headDim,
    rows: rows.buffer,
    rowStrideWords: rows.strideWords,
    rowsBaseWords: rows.offsetWords,
    numTokens: tokens.numTokens,
    numRequests,
    queryStart,
    contextLength,
  });
}
