import { AdapterError, type ConsumerStep } from '@bufferwise/adapter-kit';
import {
  type Binding,
  type ComputeStep,
  KernelError,
  type KvPages,
  type PagePlaces,
  recordPageWrite,
  recordQuantisedPageWrite,
  requireBindingWords,
  type StepData,
  type TokenRows,
  type WebGpuPoolMemory,
} from '@bufferwise/gpu-kernels';
import { type AttentionLayer, rowNumbers } from './attention-layer.ts';
import type { BoundBuffer, BoundLayer, BoundLayers, BoundNumbers } from './bound-layers.ts';
import { isMasked, type MaskedWrites, type StepTokens, type TokenTables, type WriteRuns } from './token-tables.ts';

/** What goes into a layer and comes out of it: a row for each token of the step, request after request. */
export interface AttentionRows {
  /** Rows `[numQueryHeads, headDim] f32`, with positions rotated in. */
  readonly queries: TokenRows;
  /** Rows `[numKvHeads, headDim] f32`, with positions rotated in. */
  readonly keys: TokenRows;
  /** Rows `[numKvHeads, valueDim] f32`. */
  readonly values: TokenRows;
  /** `[numTokens, numQueryHeads * valueDim] f32`, written. Not a buffer that rows lie in. */
  readonly output: GPUBuffer;
}

/** A step that has begun: what all its layers share is in its upload. */
export interface AttentionStep {
  /**
   * Records one layer: new keys and values go to their pages, then every query reads through the tables. Layers may share scratch, so
   * each is recorded once, between the other work of the model.
   *
   * @throws {AdapterError} `step-refused` on a layer that the consumer does not have; {KernelError} `kernel-dispatch` or `kernel-layout` when rows
   *   or output are too short or cannot be read four numbers at a time. Nothing was recorded then
   */
  layer(layerId: number, rows: AttentionRows): void;
}

const LABEL = 'attention rows';

/** Uploads what a step's layers share, when it is made, and records them one by one. */
export class RecordedAttentionStep implements AttentionStep {
  readonly #name: string;
  readonly #compute: ComputeStep;
  readonly #step: ConsumerStep;
  readonly #bound: BoundLayers;
  readonly #tokens: StepTokens;
  /** By `BoundBuffer.index`. */
  readonly #pools: readonly GPUBuffer[];
  /** By `BoundBuffer.table`. */
  readonly #tables: readonly StepData[];
  /** By `BoundBuffer.group`; undefined where everything is written. Most steps have none. */
  readonly #masked: readonly (MaskedWrites | undefined)[] | undefined;
  /** Tables of runs, by `BoundBuffer.group` and `table`. */
  readonly #runTables = new Map<string, StepData>();

  /** @throws {AdapterError} `step-refused` when the pages are in no WebGPU memory, {StateError} when the step has no table of a buffer */
  constructor(name: string, bound: BoundLayers, step: ConsumerStep, compute: ComputeStep, tokenTables: TokenTables) {
    const { pages, requests } = step;
    this.#name = name;
    this.#compute = compute;
    this.#step = step;
    this.#bound = bound;
    this.#pools = bound.buffers.map((buffer) => poolOf(name, step, buffer));
    const begins = bound.tables.map(({ layerId, role }) => pages.rowsAt(layerId, role));
    this.#tokens = tokenTables.upload(compute, requests);
    this.#tables = bound.tables.map(({ expansion }, i) =>
      compute.upload(pages.entries.subarray(begins[i], begins[i] + requests.length * expansion * pages.maxBlocks)),
    );
    this.#masked = requests.some(({ start, matched }) => start < matched)
      ? bound.groupIds.map((groupId) =>
          isMasked(requests, groupId) ? tokenTables.uploadMasked(compute, requests, this.#tokens.numTokens, groupId) : undefined,
        )
      : undefined;
  }

  /** Everything that `layer` refuses, without recording it. */
  check(layerId: number, { queries, keys, values, output }: AttentionRows): void {
    const { layer } = this.#boundLayer(layerId);
    const { numQueryHeads, headDim, valueDim = headDim } = layer;
    this.#requireRows(layer, 'queries', queries, numQueryHeads * headDim);
    this.#requireRows(layer, 'keys', keys, rowNumbers(layer, 'key'));
    this.#requireRows(layer, 'values', values, rowNumbers(layer, 'value'));
    requireBindingWords(LABEL, `output of layer ${layerId}`, output, this.#tokens.numTokens * numQueryHeads * valueDim);
    for (const { buffer } of [queries, keys, values]) {
      if (bufferOf(buffer) !== output) continue;
      throw new KernelError(
        'kernel-dispatch',
        LABEL,
        `the output of layer ${layerId} is written and its rows are read in the same buffer (${output.label}). Keep them in two buffers.`,
      );
    }
  }

  layer(layerId: number, rows: AttentionRows): void {
    this.check(layerId, rows);
    if (this.#tokens.numTokens === 0) return;
    const bound = this.#boundLayer(layerId);
    this.#write(bound.layer, bound.keys, rows.keys, bound.layer.headDim);
    this.#write(bound.layer, bound.values, rows.values, bound.layer.valueDim ?? bound.layer.headDim);
    this.#attend(bound, rows);
  }

  #write(layer: AttentionLayer, target: BoundNumbers, rows: TokenRows, headDim: number): void {
    const { numTokens, numRequests, queryStart, contextLength, places } = this.#tokens;
    const masked = this.#masked?.[target.group];
    const pages: KvPages = this.#place(target);
    if (target.scales === undefined) {
      const { tokensPerPage, tableStride, pageStrideWords } = pages;
      recordPageWrite(this.#compute, {
        shape: {
          numTokens,
          tokensPerPage,
          tableStride,
          pageStrideWords,
          rowWords: layer.numKvHeads * headDim,
          rowStrideWords: rows.strideWords,
          rowsBaseWords: rows.offsetWords,
          storage: layer.storage === 'f16' ? 'f16' : 'f32',
        },
        rows: rows.buffer,
        tokens: masked?.places ?? places,
        pageTable: pages.table,
        pages: pages.pool,
      });
      return;
    }
    const scales = this.#place(target.scales);
    const runs = masked?.runs;
    recordQuantisedPageWrite(this.#compute, {
      target: runs
        ? { ...pages, table: this.#runTable(target, runs), scales: { ...scales, table: this.#runTable(target.scales, runs) } }
        : pages,
      numKvHeads: layer.numKvHeads,
      headDim,
      rows: rows.buffer,
      rowStrideWords: rows.strideWords,
      rowsBaseWords: rows.offsetWords,
      numTokens,
      numRequests: runs?.numRuns ?? numRequests,
      queryStart: runs?.queryStart ?? queryStart,
      contextLength: runs?.contextLength ?? contextLength,
    });
  }

  #attend({ layer, attention, keys, values }: BoundLayer, { queries, output }: AttentionRows): void {
    const { numTokens, numRequests, queryStart, contextLength, maxContextLength } = this.#tokens;
    for (const { scales } of [keys, values]) if (scales) this.#place(scales);
    const operands = {
      keys: this.#place(keys),
      values: this.#place(values),
      queries: queries.buffer,
      queriesStrideWords: queries.strideWords,
      queriesBaseWords: queries.offsetWords,
      contextLength,
      output,
      numRequests,
      slidingWindowSize: layer.slidingWindowSize,
      numSinkTokens: layer.numSinkTokens,
      sinkScores: layer.sinkScores,
      // What the other of the two needs does no harm.
      maxContextLength,
      numTokens,
      queryStart,
    };
    if (numTokens === numRequests) attention.decode(this.#compute, operands);
    else attention.prefill(this.#compute, operands);
  }

  /** Puts the memory and the tables of this step into what says where a buffer's pages are. */
  #place<Places extends PagePlaces>({ places, index, table, expansion }: BoundBuffer & { places: Places }): Places {
    places.pool = this.#pools[index];
    places.table = this.#tables[table];
    places.tableStride = expansion * this.#step.pages.maxBlocks;
    return places;
  }

  /** The table of a buffer with a row for each run instead of each request. */
  #runTable({ layerId, role, group, table, expansion }: BoundBuffer, { numRuns, requestOf }: WriteRuns): StepData {
    const key = `${group} ${table}`;
    const known = this.#runTables.get(key);
    if (known) return known;
    const { pages } = this.#step;
    const rowLength = expansion * pages.maxBlocks;
    const entries = new Int32Array(numRuns * rowLength).fill(-1);
    requestOf.forEach((request, run) => {
      if (request >= 0) entries.set(pages.row(layerId, role, request), run * rowLength);
    });
    const data = this.#compute.upload(entries);
    this.#runTables.set(key, data);
    return data;
  }

  #boundLayer(layerId: number): BoundLayer {
    const bound = this.#bound.byId.get(layerId);
    if (bound) return bound;
    throw new AdapterError(
      'step-refused',
      `${this.#name} has no layer ${layerId}; its layers are ${[...this.#bound.byId.keys()].join(', ')}`,
    );
  }

  #requireRows(
    { layerId }: AttentionLayer,
    what: string,
    { buffer, offsetWords, strideWords }: TokenRows,
    rowWords: number,
  ): void {
    const name = `${what} of layer ${layerId}`;
    if (!isMultipleOfFour(offsetWords) || !isMultipleOfFour(strideWords)) {
      throw new KernelError(
        'kernel-layout',
        LABEL,
        `${name} begin at word ${offsetWords}, ${strideWords} apart, but are read four numbers at a time. Make both multiples of 4.`,
      );
    }
    if (strideWords < rowWords) {
      throw new KernelError('kernel-layout', LABEL, `${name} are ${strideWords} words apart, but a row has ${rowWords}.`);
    }
    const { numTokens } = this.#tokens;
    requireBindingWords(LABEL, name, buffer, numTokens === 0 ? 0 : offsetWords + (numTokens - 1) * strideWords + rowWords);
  }
}

function isMultipleOfFour(words: number): boolean {
  return Number.isSafeInteger(words) && words >= 0 && words % 4 === 0;
}

function bufferOf(binding: Binding): GPUBuffer | undefined {
  if ('step' in binding) return undefined;
  return 'buffer' in binding ? binding.buffer : binding;
}

function poolOf(name: string, step: ConsumerStep, { layerId, role }: BoundBuffer): GPUBuffer {
  const { buffer } = step.poolMemory(layerId, role) as Partial<WebGpuPoolMemory>;
  if (buffer !== undefined) return buffer;
  throw new AdapterError(
    'step-refused',
    `${name} computes on WebGPU, and the pages of ${role} of layer ${layerId} lie elsewhere; give the manager a \`WebGpuPageDevice\``,
  );
}
