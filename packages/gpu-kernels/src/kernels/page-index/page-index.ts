import { KernelError } from '../../errors/kernel-error.ts';
import type { ComputeStep } from '../../kernel/compute-step.ts';
import { defineKernel } from '../../kernel/kernel.ts';
import { packParams } from '../../kernel/params.ts';
import code from './page-index.wgsl';

/** Blocks of one request that lie in scratch slots: `ScratchDesc` of `@bufferwise/scratch-allocator` is one. */
export interface PageIndexScratch {
  /** Block ordinals, half-open. */
  readonly range: { readonly begin: number; readonly end: number };
  readonly slotIds: Int32Array;
}

/** The slot ids of one lifecycle, for all requests of a step. */
export interface PageIndexSource {
  /** Entries of a row: blocks of the longest request, 1 for recurrent state. */
  blocks: number;
  /** `[numRequests, blocks]` slot ids, -1 where there is no page. */
  slotIds: Int32Array;
  /** Scratch of each request, null where it has none. Left out: nobody has any. */
  scratch?: readonly (PageIndexScratch | null)[];
}

/** How the table of one buffer is made: the fields of its `PageIndexConverter`, and the lifecycle that it belongs to. */
export interface PageIndexSection {
  /** Position of its lifecycle among the sources. */
  source: number;
  /** Sub-pages a slot. */
  scale: number;
  /** Pages a block. */
  expansion: number;
  /** Place of the buffer in the slot; 0 makes a table for all buffers of a slot, which they read from their own offset. */
  layerOffset: number;
  scratchPagesPerBlock: number;
  rankInLayer: number;
}

/** Where the table of a section is: `[numRequests, rowLength] i32`. */
export interface PageIndexTable {
  /** Entries from one request to the next. */
  rowLength: number;
  /** Bytes, as a storage binding needs them. */
  offset: number;
  size: number;
}

export interface PageIndexPlan {
  /** One for each section. */
  tables: readonly PageIndexTable[];
  /** Bytes of the buffer that holds them all. */
  bytes: number;
}

/** What the dispatch formula of the kernel is computed from. */
export interface PageIndexShape {
  /** Entries of the longest table. */
  numEntries: number;
  numSections: number;
}

const LANES = 64;
const SECTION_WORDS = 9;
/** Alignment of a storage binding, which every device meets. */
const TABLE_ALIGNMENT = 256;

/**
 * Makes the page tables of a step on the device: slot ids go up once a lifecycle, and come out as page indices once a buffer. One
 * dispatch for all buffers and requests.
 *
 * - `words` i32, read-only-storage: the sections (9 words each), the slot ids of the sources, and their scratch.
 * - `tables` i32, storage (read_write): see `planPageIndex`.
 * - `params` uniform: `numRequests`.
 * - Workgroup 64 × 1 × 1; dispatch `ceil(longest table / (64 * entriesPerLane)) × numSections`.
 * - Needs no feature, no limit above the defaults, no workgroup memory.
 *
 * @see page-index.reference.ts
 */
export const pageIndexKernel = defineKernel({
  label: 'page-index',
  code,
  bindings: { words: 'read-only-storage', tables: 'storage', params: 'uniform' },
  constants: { entriesPerLane: 8 },
  workgroupSize: () => [LANES, 1, 1],
  workgroups: ({ numEntries, numSections }: PageIndexShape, { entriesPerLane }) => [
    Math.ceil(numEntries / (LANES * entriesPerLane)),
    numSections,
    1,
  ],
});

/** Where each table begins, and how large a buffer holds them. Changes only with the number of requests and of blocks. */
export function planPageIndex(
  numRequests: number,
  sources: readonly Pick<PageIndexSource, 'blocks'>[],
  sections: readonly PageIndexSection[],
): PageIndexPlan {
  let bytes = 0;
  const tables = sections.map(({ source, expansion }) => {
    const rowLength = sources[source].blocks * expansion;
    const table = { rowLength, offset: bytes, size: numRequests * rowLength * 4 };
    bytes += Math.ceil(table.size / TABLE_ALIGNMENT) * TABLE_ALIGNMENT;
    return table;
  });
  return { tables, bytes };
}

export interface PageIndexOptions {
  numRequests: number;
  sources: readonly PageIndexSource[];
  sections: readonly PageIndexSection[];
  /** At least `plan.bytes` bytes. Kernels bind `{ buffer: target, ...table }`. */
  target: GPUBuffer;
}

/**
 * Records the conversion: one dispatch. What the sources hold is copied before the call returns.
 *
 * @returns where the tables are, as `planPageIndex` says
 * @throws {KernelError} `kernel-dispatch` when a source has not the rows it should, scratch blocks do not fit into their slots, or
 *   the tables do not fit into the target; nothing is recorded then
 */
export function recordPageIndex(step: ComputeStep, options: PageIndexOptions): PageIndexPlan {
  const { numRequests, sources, sections, target } = options;
  for (const [index, source] of sources.entries()) requireRows(source, index, numRequests);
  for (const section of sections) requireScratchSlots(section, sources[section.source]);
  const plan = planPageIndex(numRequests, sources, sections);
  if (plan.bytes > target.size) throw refused(`tables of ${plan.bytes} bytes do not fit into a buffer of ${target.size}.`);
  const words = step.upload(packWords(sources, sections, plan));
  const params = step.upload(packParams({ numRequests: 'u32' }, { numRequests }));
  const numEntries = Math.max(0, ...plan.tables.map(({ size }) => size / 4));
  step.dispatch(pageIndexKernel, {
    shape: { numEntries, numSections: sections.length },
    bindings: { words, tables: target, params },
  });
  return plan;
}

function packWords(
  sources: readonly PageIndexSource[],
  sections: readonly PageIndexSection[],
  { tables }: PageIndexPlan,
): Int32Array {
  const places: { baseAt: number; scratchAt: number }[] = [];
  let length = sections.length * SECTION_WORDS;
  for (const { slotIds, scratch } of sources) {
    const baseAt = length;
    length += slotIds.length;
    const scratchAt = scratch ? length : 0;
    if (scratch) length += scratch.reduce((sum, one) => sum + 3 + (one?.slotIds.length ?? 0), 0);
    places.push({ baseAt, scratchAt });
  }
  const words = new Int32Array(length);
  sections.forEach((section, index) => {
    const { scale, expansion, layerOffset, scratchPagesPerBlock, rankInLayer } = section;
    const { baseAt, scratchAt } = places[section.source];
    const { blocks } = sources[section.source];
    const tableAt = tables[index].offset / 4;
    words.set(
      [scale, expansion, layerOffset, scratchPagesPerBlock, rankInLayer, blocks, baseAt, scratchAt, tableAt],
      index * SECTION_WORDS,
    );
  });
  sources.forEach(({ slotIds, scratch }, index) => {
    const { baseAt, scratchAt } = places[index];
    words.set(slotIds, baseAt);
    if (scratch) packScratch(words, scratchAt, scratch);
  });
  return words;
}

function packScratch(words: Int32Array, at: number, scratch: readonly (PageIndexScratch | null)[]): void {
  let slotsAt = at + scratch.length * 3;
  scratch.forEach((one, request) => {
    if (one === null) return;
    words.set([one.range.begin, one.range.end, slotsAt], at + request * 3);
    words.set(one.slotIds, slotsAt);
    slotsAt += one.slotIds.length;
  });
}

function requireRows({ blocks, slotIds, scratch }: PageIndexSource, index: number, numRequests: number): void {
  if (slotIds.length !== numRequests * blocks) {
    throw refused(
      `source ${index} has ${slotIds.length} slot ids, ${numRequests} requests of ${blocks} blocks have ${numRequests * blocks}.`,
    );
  }
  if (scratch !== undefined && scratch.length !== numRequests) {
    throw refused(`source ${index} tells the scratch of ${scratch.length} requests, there are ${numRequests}.`);
  }
}

/** The device would read past the slots, and name somebody's page. */
function requireScratchSlots({ scale, scratchPagesPerBlock }: PageIndexSection, { blocks, scratch }: PageIndexSource): void {
  for (const one of scratch ?? []) {
    if (one === null) continue;
    const { begin, end } = one.range;
    const subPages = (Math.min(end, blocks) - begin) * scratchPagesPerBlock;
    if (subPages <= one.slotIds.length * scale) continue;
    throw refused(`${subPages} scratch sub-pages do not fit into ${one.slotIds.length} slots of ${scale} sub-pages.`);
  }
}

function refused(what: string): KernelError {
  return new KernelError('kernel-dispatch', pageIndexKernel.label, what);
}
