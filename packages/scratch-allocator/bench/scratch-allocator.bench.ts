/**
 * How fast slots go out and come back and how fast tables are converted, beside a straightforward version with maps and objects
 * in the same run. Ratios hold from machine to machine, times only roughly.
 */
import { defineCacheConfig, type LayerConfig, type LifecycleId } from '@bufferwise/core-policy';
import { Bench } from 'tinybench';
import { type PageSource, type ScratchDesc, SlotAllocator, StepTable, StorageLayout } from '../src/index.ts';

const SLOTS = 1 << 20;
const IN_USE = 400_000;
const PAIRS = 4096;
const INDICES = 4096;
const LAYERS = 32;
const REQUESTS = 16;
const BLOCKS = 128;

/** A task, how much it does in one call, and what it is compared with. */
interface Contest {
  title: string;
  /** Pairs or indices in one call. */
  units: number;
  ours: () => void;
  plain: () => void;
  /** Nanoseconds a unit that ours must reach, where the design names a figure. */
  target?: number;
}

interface Figure {
  task: string;
  /** Median nanoseconds a unit, ours and the straightforward version's. */
  oursNs: number;
  plainNs: number;
  timesFaster: number;
  /** Nanoseconds a unit that the design asks for; none where it asks for nothing. */
  targetNs: number | '';
}

export const columns = {
  oursNs: { unit: 'ns', better: 'lower' },
  plainNs: { unit: 'ns', better: 'none' },
  timesFaster: { unit: 'x', better: 'none' },
  targetNs: { unit: 'ns', better: 'none' },
} satisfies Partial<Record<keyof Figure, object>>;

export default async function bench(): Promise<Figure[]> {
  const rows: Figure[] = [];
  for (const contest of [slotPairs(), slotChurn(), converted(), convertedScratch(), stepTable()])
    rows.push(await compare(contest));
  return rows;
}

async function compare({ title, units, ours, plain, target }: Contest): Promise<Figure> {
  const bench = new Bench({ time: 500, warmupTime: 100 }).add('ours', ours).add('plain', plain);
  await bench.run();
  const [ourTime, plainTime] = bench.tasks.map(({ result }) => {
    if (!('latency' in result)) throw new Error(`${title}: no result`);
    return (result.latency.p50 * 1e6) / units;
  });
  return { task: title, oursNs: ourTime, plainNs: plainTime, timesFaster: plainTime / ourTime, targetNs: target ?? '' };
}

/** The straightforward allocator: an object for each slot, found by id in a map, and a list of the free ones. */
class PlainAllocator {
  readonly #slots = new Map<number, { id: number; used: boolean }>();
  readonly #free: { id: number; used: boolean }[] = [];

  constructor(slots: number) {
    for (let id = slots - 1; id >= 0; id--) {
      const slot = { id, used: false };
      this.#slots.set(id, slot);
      this.#free.push(slot);
    }
  }

  allocate(n: number): number[] | null {
    if (n > this.#free.length) return null;
    return this.#free.splice(-n).map((slot) => {
      slot.used = true;
      return slot.id;
    });
  }

  release(id: number): void {
    const slot = this.#slots.get(id);
    if (slot === undefined || !slot.used) throw new Error(`slot ${id} is not out`);
    slot.used = false;
    this.#free.push(slot);
  }
}

function slotPairs(): Contest {
  const ours = new SlotAllocator(SLOTS);
  const plain = new PlainAllocator(SLOTS);
  ours.allocate(IN_USE, new Int32Array(IN_USE));
  plain.allocate(IN_USE);
  const out = new Int32Array(1);
  return {
    title: 'allocate 1, release 1',
    units: PAIRS,
    target: 100,
    ours: () => {
      for (let i = 0; i < PAIRS; i++) {
        ours.allocate(1, out);
        ours.release(out[0]);
      }
    },
    plain: () => {
      for (let i = 0; i < PAIRS; i++) for (const slot of plain.allocate(1) as number[]) plain.release(slot);
    },
  };
}

/** Slots come back here and there, as those of requests that end, and go out again. */
function slotChurn(): Contest {
  const BATCH = 64;
  const batches = IN_USE / BATCH;
  const ours = new SlotAllocator(SLOTS);
  const plain = new PlainAllocator(SLOTS);
  const ourSlots = Array.from({ length: batches }, () => new Int32Array(BATCH));
  for (const out of ourSlots) ours.allocate(BATCH, out);
  const plainSlots = Array.from({ length: batches }, () => plain.allocate(BATCH) as number[]);
  const rounds = PAIRS / BATCH;
  let seed = 1;
  const next = () => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fffffff;
    return seed % (batches - 1);
  };
  return {
    title: 'release 64 here and there, allocate 64',
    units: PAIRS,
    target: 100,
    ours: () => {
      for (let i = 0; i < rounds; i++) {
        const a = ourSlots[next()];
        const b = ourSlots[batches - 1];
        for (let j = 0; j < BATCH; j += 2) ours.release(a[j]);
        for (let j = 0; j < BATCH; j += 2) ours.release(b[j]);
        for (let j = 0; j < BATCH; j += 2) ours.allocate(1, a, j);
        for (let j = 0; j < BATCH; j += 2) ours.allocate(1, b, j);
      }
    },
    plain: () => {
      for (let i = 0; i < rounds; i++) {
        const a = plainSlots[next()];
        const b = plainSlots[batches - 1];
        for (let j = 0; j < BATCH; j += 2) plain.release(a[j]);
        for (let j = 0; j < BATCH; j += 2) plain.release(b[j]);
        for (let j = 0; j < BATCH; j += 2) a[j] = (plain.allocate(1) as number[])[0];
        for (let j = 0; j < BATCH; j += 2) b[j] = (plain.allocate(1) as number[])[0];
      }
    },
  };
}

const GROUP = 0 as LifecycleId;

/** Layers of keys and values, every other with one more buffer, all in one coalesced buffer. */
function windowedLayout(): StorageLayout {
  const layers = Array.from({ length: LAYERS }, (_, layerId): LayerConfig => {
    const roles = layerId % 2 === 0 ? ['key', 'value'] : ['key', 'value', 'index'];
    return { type: 'attention', layerId, slidingWindowSize: 128, buffers: roles.map((role) => ({ role, size: 8192 })) };
  });
  return StorageLayout.fromConfig(defineCacheConfig({ tokensPerBlock: 64, layers, tiers: [{ tier: 'device', quota: 2 ** 30 }] }));
}

/** What the rules say, block by block, with an object for each. */
function plainConvert(
  layout: StorageLayout,
  layerId: number,
  role: string,
  base: readonly number[],
  scratch: ScratchDesc | null,
): number[] {
  const { bufferIds } = layout.coalescedBuffer(layerId, role);
  const { indexInSlot, scratchPagesPerBlock, expansion } = layout.bufferAttr(layerId, role);
  const rank = bufferIds.filter((id) => id.layerId === layerId).findIndex((id) => id.role === role);
  return base
    .map((slot, block) => {
      if (scratch !== null && block >= scratch.range.begin && block < scratch.range.end) {
        const linear = (block - scratch.range.begin) * scratchPagesPerBlock + rank;
        return { slot: scratch.slotIds[Math.floor(linear / bufferIds.length)], subPage: linear % bufferIds.length };
      }
      return { slot, subPage: indexInSlot };
    })
    .flatMap(({ slot, subPage }) =>
      Array.from({ length: expansion }, (_, j) => (slot < 0 ? -1 : (slot * bufferIds.length + subPage) * expansion + j)),
    );
}

function converted(): Contest {
  const layout = windowedLayout();
  const converter = layout.pageIndexConverter(7, 'index');
  const base = Int32Array.from({ length: INDICES }, (_, i) => (i % 16 === 0 ? -1 : i));
  const plainBase = [...base];
  const out = new Int32Array(INDICES);
  const options = { indexMode: 'per_layer', out } as const;
  return {
    title: 'convert 4,096 indices',
    units: INDICES,
    target: 20_000 / INDICES,
    ours: () => void converter.convert(base, options),
    plain: () => void plainConvert(layout, 7, 'index', plainBase, null),
  };
}

function convertedScratch(): Contest {
  const layout = windowedLayout();
  const converter = layout.pageIndexConverter(7, 'value');
  const base = new Int32Array(INDICES).fill(-1);
  const plainBase = [...base];
  const slotIds = Int32Array.from({ length: layout.scratchSlots(GROUP, INDICES) }, (_, i) => 3 * i);
  const scratch = { range: { begin: 0, end: INDICES }, slotIds };
  const options = { indexMode: 'per_layer', scratch, out: new Int32Array(INDICES) } as const;
  return {
    title: 'convert 4,096 scratch indices',
    units: INDICES,
    target: 20_000 / INDICES,
    ours: () => void converter.convert(base, options),
    plain: () => void plainConvert(layout, 7, 'value', plainBase, scratch),
  };
}

function stepTable(): Contest {
  const layout = windowedLayout();
  const bufferIds = layout.lifecycles.bufferGrouping.flat();
  const table = new StepTable(layout, bufferIds);
  const bases = Array.from({ length: REQUESTS }, (_, request) =>
    Int32Array.from({ length: BLOCKS }, (_, block) => request * BLOCKS + block),
  );
  const requests = bases.map(
    (base): PageSource => ({ basePageIndices: () => base, ssmBlockBaseIndex: () => -1, scratch: () => null }),
  );
  const out = new Int32Array(table.length(REQUESTS, BLOCKS));
  return {
    title: `table of a step: ${REQUESTS} requests, ${BLOCKS} blocks, ${bufferIds.length} buffers`,
    units: out.length,
    ours: () => void table.fill(requests, BLOCKS, out),
    plain: () => {
      const byBuffer = new Map<string, number[][]>();
      for (const { layerId, role } of bufferIds) {
        byBuffer.set(
          `${layerId}.${role}`,
          bases.map((base) => plainConvert(layout, layerId, role, [...base], null)),
        );
      }
      out.set([...byBuffer.values()].flat(2));
    },
  };
}
