import { defineCacheConfig } from '@bufferwise/core-policy';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CostAwareQueue } from '../../src/eviction/cost-aware-queue.ts';
import { LruQueue } from '../../src/eviction/lru-queue.ts';
import type { NumberedPages } from '../../src/eviction/numbered-pages.ts';
import {
  type EvictablePages,
  type EvictionChoice,
  type EvictionPolicy,
  HostPageDevice,
  type KvCache,
  KvCacheManager,
  MemoryTierStore,
} from '../../src/index.ts';
import { pageAt, rowOf } from '../../src/page/page-table.ts';
import { full, type LayerShape, type ModelOptions, model, recurrent, windowed } from '../support/stage.ts';

/** One of our own queues as a policy of the caller: by numbers, not by ids. */
class Numbered implements EvictionPolicy {
  readonly #queue: CostAwareQueue | LruQueue;

  constructor(queue: CostAwareQueue | LruQueue) {
    this.#queue = queue;
  }

  get count(): number {
    return this.#queue.count;
  }

  push(page: number): void {
    this.#queue.push(pageAt(page));
  }

  remove(page: number): void {
    this.#queue.remove(pageAt(page));
  }

  first(): number {
    const page = this.#queue.first();
    return page === -1 ? -1 : rowOf(page);
  }

  *[Symbol.iterator](): Iterator<number> {
    for (const page of this.#queue) yield rowOf(page);
  }

  reused(page: number): void {
    if (this.#queue instanceof CostAwareQueue) this.#queue.reused(pageAt(page));
  }

  wanted(group: number, contentHash: number): boolean {
    return this.#queue instanceof CostAwareQueue && this.#queue.wanted(group, contentHash);
  }

  becameLeaf(page: number): void {
    if (this.#queue instanceof CostAwareQueue) this.#queue.becameLeaf(pageAt(page));
  }
}

/** Asks another policy, and checks it and the manager against a list that it keeps itself. */
class Witness implements EvictionPolicy {
  /** Pages that left although somebody needed them, by what was wrong. */
  readonly findings: string[] = [];
  readonly victims: number[] = [];
  readonly #inner: EvictionPolicy;
  readonly #pages: EvictablePages;
  readonly #leafFirst: boolean;
  readonly #queued = new Set<number>();

  constructor(inner: EvictionPolicy, pages: EvictablePages, leafFirst: boolean) {
    this.#inner = inner;
    this.#pages = pages;
    this.#leafFirst = leafFirst;
  }

  get count(): number {
    if (this.#inner.count !== this.#queued.size) this.findings.push(`counts ${this.#inner.count} of ${this.#queued.size}`);
    return this.#inner.count;
  }

  push(page: number): void {
    if (this.#queued.has(page)) this.findings.push(`page ${page} comes twice`);
    this.#queued.add(page);
    this.#inner.push(page);
  }

  remove(page: number): void {
    if (!this.#queued.delete(page)) this.findings.push(`page ${page} goes without having come`);
    this.#inner.remove(page);
  }

  first(): number {
    const page = this.#inner.first();
    this.victims.push(page);
    if (page === -1) {
      if (this.#queued.size > 0) this.findings.push('names none although some are there');
      return page;
    }
    if (!this.#queued.has(page)) this.findings.push(`names page ${page}, which somebody holds`);
    const leaves = [...this.#queued].filter((each) => !this.#leafFirst || this.#pages.isLeaf(each));
    if (leaves.length === 0) return page;
    const lowest = Math.min(...leaves.map((each) => this.#pages.priorityOf(each)));
    if (this.#pages.priorityOf(page) !== lowest) {
      this.findings.push(`names a page of priority ${this.#pages.priorityOf(page)} though one of ${lowest} could go`);
    }
    if (this.#leafFirst && !this.#pages.isLeaf(page)) this.findings.push(`names page ${page}, which others hang from`);
    return page;
  }

  [Symbol.iterator](): Iterator<number> {
    return this.#inner[Symbol.iterator]();
  }

  reused(page: number): void {
    if (this.#queued.has(page)) this.findings.push(`page ${page} is reused in the queue`);
    this.#inner.reused?.(page);
  }

  wanted(group: number, contentHash: number): boolean {
    return this.#inner.wanted?.(group, contentHash) ?? false;
  }

  becameLeaf(page: number): void {
    if (!this.#queued.has(page)) this.findings.push(`page ${page} became a leaf outside the queue`);
    this.#inner.becameLeaf?.(page);
  }
}

const anyStep = fc.record({
  what: fc.constantFrom('serve', 'serve', 'serve', 'open', 'go on', 'go on', 'suspend', 'close', 'pin', 'unpin', 'wait'),
  /** The prompt: one of few beginnings, then one of few ends. */
  begin: fc.nat(3),
  end: fc.nat(5),
  length: fc.integer({ min: 1, max: 30 }),
  answer: fc.nat(12),
  snapshots: fc.boolean(),
  priority: fc.constantFrom<undefined | number>(undefined, undefined, 0, 35, 90),
  durationMs: fc.constantFrom<undefined | number>(undefined, 5, 50),
  choice: fc.nat(),
});
type Step = typeof anyStep extends fc.Arbitrary<infer T> ? T : never;

function promptOf({ begin, end, length }: Step): number[] {
  const shared = Math.min(length, 12);
  return Array.from({ length }, (_, i) => (i < shared ? begin * 100 + i : begin * 100 + (end + 1) * 1000 + i));
}

type Colder = Pick<ModelOptions, 'hostSlots' | 'diskSlots'>;

/** Lives one random life. Returns what was evicted, in order, and what the witnesses found, one for each pool group of each tier. */
async function live(
  layers: readonly LayerShape[],
  colder: Colder,
  inner: 'lru' | 'cost-aware',
  steps: readonly Step[],
): Promise<Witness[]> {
  const witnesses: Witness[] = [];
  let now = 0;
  const eviction: EvictionChoice = (pages) => {
    const { view } = pages as NumberedPages;
    const queue = inner === 'lru' ? new LruQueue(view.table) : new CostAwareQueue(view);
    const witness = new Witness(new Numbered(queue), pages, inner === 'cost-aware');
    witnesses.push(witness);
    return witness;
  };
  const manager = new KvCacheManager({
    config: defineCacheConfig(model(layers, { slots: 24, maxUtilForResume: 1, ...colder })),
    disk: new MemoryTierStore(),
    device: new HostPageDevice(),
    debugChecks: true,
    eviction,
    now: () => now,
  });
  const open: { kv: KvCache; tokens: number[] }[] = [];
  const pins: { release(): void }[] = [];
  const begin = async (step: Step) => {
    const tokens = promptOf(step);
    const { priority, durationMs } = step;
    const retention = priority === undefined ? [] : [{ begin: 0, end: 16, priority, durationMs }];
    const kv = manager.createKvCache({
      tokens,
      retention,
      expectedPromptLength: step.choice % 2 === 0 ? tokens.length : undefined,
    });
    if (await kv.resume()) return { kv, tokens };
    kv.close();
    return null;
  };
  const goOn = ({ kv, tokens }: { kv: KvCache; tokens: number[] }, step: Step) => {
    const all = [...tokens, ...Array.from({ length: step.answer }, (_, i) => 9000 + i)];
    const rest = all.slice(kv.numCommittedTokens, kv.numCommittedTokens + 1 + (step.choice % 16));
    if (rest.length > 0 && kv.resize(kv.numCommittedTokens + rest.length, kv.historyLength))
      kv.commit(rest, { snapshot: step.snapshots });
  };
  for (const step of steps) {
    now++;
    if (step.what === 'wait') now += 20;
    if (step.what === 'serve' || step.what === 'open') {
      const request = await begin(step);
      if (request === null) continue;
      goOn(request, step);
      if (step.what === 'open') open.push(request);
      else request.kv.close();
    }
    if (step.what === 'go on' && open.length > 0) {
      const request = open[step.choice % open.length];
      if (request.kv.status === 'active' || (await request.kv.resume())) goOn(request, step);
    }
    if (step.what === 'suspend' && open.length > 0) {
      const { kv } = open[step.choice % open.length];
      if (kv.status === 'active') kv.suspend();
    }
    if (step.what === 'close' && open.length > 0) open.splice(step.choice % open.length, 1)[0].kv.close();
    if (step.what === 'pin') {
      const pin = manager.pin(promptOf(step), undefined, { durationMs: step.durationMs });
      if (pin !== null) pins.push(pin);
    }
    if (step.what === 'unpin' && pins.length > 0) pins.splice(step.choice % pins.length, 1)[0].release();
    await manager.settled();
  }
  for (const { kv } of open) kv.close();
  for (const pin of pins) pin.release();
  await manager.settled();
  for (let tier = 0; tier < 1 + Object.keys(colder).length; tier++)
    for (const { free, evictable, total } of manager.storageStatistics(tier)) expect(free + evictable).toBe(total);
  await manager.close();
  return witnesses;
}

const MODELS: [string, LayerShape[]][] = [
  ['full attention', [full()]],
  ['full attention and a window', [full(), windowed(8)]],
  ['full attention and state', [full(), recurrent()]],
  ['a window with sinks', [windowed(8, 'required', 4)]],
  ['state and an optional window', [recurrent(), windowed(8, 'optional')]],
];

const POLICIES = ['lru', 'cost-aware'] as const;
const TIERS: [string, Colder][] = [
  ['on the device alone', {}],
  ['with a host behind it', { hostSlots: 12 }],
  ['with a host and a disk behind it', { hostSlots: 8, diskSlots: 12 }],
];

describe.each(MODELS)('%s', (_, layers) => {
  test.each(POLICIES.flatMap((policy) => TIERS.map(([where, colder]) => [policy, where, colder] as const)))(
    '%s eviction %s never takes what somebody holds, goes by priority, and does the same for the same calls',
    async (policy, _where, colder) => {
      await fc.assert(
        fc.asyncProperty(fc.array(anyStep, { minLength: 20, maxLength: 60 }), async (steps) => {
          const first = await live(layers, colder, policy, steps);
          for (const witness of first) expect(witness.findings).toEqual([]);
          const second = await live(layers, colder, policy, steps);
          expect(second.map(({ victims }) => victims)).toEqual(first.map(({ victims }) => victims));
        }),
        { numRuns: 8 },
      );
    },
    60_000,
  );
});
