import type { ReuseScope } from '@bufferwise/cache-manager';
import { fullAttention, type LayerGroupId, type Lifecycle, slidingWindow, ssmState } from '@bufferwise/core-policy';
import type {
  BlocksByGroup,
  ConnectorGroup,
  ConnectorLayout,
  ConnectorMemory,
  FailedPage,
  KvConnector,
  Lookup,
  StepReport,
} from '../../connector/kv-connector.ts';
import { mix, mixText } from '../../memory/mix.ts';
import { BrokenPromiseError, ensure, settled } from '../assertions.ts';
import { DEFAULT_PATIENCE_MS } from '../suite.ts';
import type { KvConnectorHarness } from './harness.ts';

export const TOKENS_PER_BLOCK = 4;
const SLOTS = 256;

/** Full attention, a window of 6 tokens, optional full attention, and recurrent state where the connector keeps it. */
export function stageLayout(connector: KvConnector, modelFingerprint = 'model a'): ConnectorLayout {
  const lifecycles: [Lifecycle, number[], number][] = [
    [fullAttention(), [0, 2], 48],
    [slidingWindow(6), [1], 16],
    [fullAttention({ policy: 'optional' }), [2], 8],
  ];
  if (connector.supports.snapshots) lifecycles.push([ssmState('required'), [3], 24]);
  return {
    modelFingerprint,
    tokensPerBlock: TOKENS_PER_BLOCK,
    groups: lifecycles.map(
      ([lifecycle, layerIds, pageBytes], id): ConnectorGroup => ({ groupId: id as LayerGroupId, lifecycle, layerIds, pageBytes }),
    ),
  };
}

/** Pages of a device, slot by slot, with a list of what was touched. */
export class StageMemory implements ConnectorMemory {
  readonly pages = new Map<string, Uint8Array>();
  readonly read: string[] = [];
  readonly written: string[] = [];
  readonly #pageBytes: readonly number[];

  constructor({ groups }: ConnectorLayout) {
    this.#pageBytes = groups.map(({ pageBytes }) => pageBytes);
  }

  async readPages(groupId: LayerGroupId, slots: readonly number[]): Promise<readonly Uint8Array[]> {
    // The copy is handed in now; it is there later.
    const pages = slots.map((slot) => this.page(groupId, slot).slice());
    for (const slot of slots) this.read.push(`${groupId} ${slot}`);
    await Promise.resolve();
    return pages;
  }

  writePages(groupId: LayerGroupId, slots: readonly number[], pages: readonly Uint8Array[]): void {
    slots.forEach((slot, i) => {
      ensure(
        pages[i].length === this.#pageBytes[groupId],
        `a page of ${pages[i].length} bytes was written into group ${groupId}`,
      );
      this.page(groupId, slot).set(pages[i]);
      this.written.push(`${groupId} ${slot}`);
    });
  }

  page(groupId: number, slot: number): Uint8Array {
    if (!Number.isSafeInteger(slot) || slot < 0 || slot >= SLOTS)
      throw new BrokenPromiseError(`slot ${slot} of group ${groupId} was asked for`);
    const key = `${groupId} ${slot}`;
    const page = this.pages.get(key) ?? new Uint8Array(this.#pageBytes[groupId]).fill(0xff);
    this.pages.set(key, page);
    return page;
  }
}

export interface StageRequest {
  readonly id: number;
  readonly tokens: readonly number[];
  readonly scope?: ReuseScope;
  blocks: BlocksByGroup;
}

/** An engine that has no model: it writes pages that say whose they are, and calls a connector in the order that engines do. */
export class ConnectorStage {
  readonly connector: KvConnector;
  readonly layout: ConnectorLayout;
  readonly memory: StageMemory;
  readonly patienceMs: number;
  readonly failed: FailedPage[] = [];
  readonly saved: number[] = [];
  readonly loaded: number[] = [];
  #nextSlot = 0;
  #nextId = 1;

  constructor(connector: KvConnector, layout: ConnectorLayout, patienceMs: number) {
    this.connector = connector;
    this.layout = layout;
    this.memory = new StageMemory(layout);
    this.patienceMs = patienceMs;
    connector.register(layout, this.memory);
  }

  /** Slots for all blocks of a request; out-of-window blocks have none. */
  request(tokens: readonly number[], scope?: ReuseScope): StageRequest {
    const numBlocks = Math.ceil(tokens.length / TOKENS_PER_BLOCK);
    const blocks = this.layout.groups.map(({ lifecycle }) =>
      lifecycle.kind === 'ssm' ? [this.#nextSlot++ % SLOTS] : Array.from({ length: numBlocks }, () => this.#nextSlot++ % SLOTS),
    );
    return { id: this.#nextId++, tokens, scope, blocks };
  }

  /** A lookup's answer once it is known. */
  async known(request: StageRequest, computedTokens = 0): Promise<Extract<Lookup, { state: 'known' }>> {
    const until = Date.now() + this.patienceMs;
    for (;;) {
      const answer = this.connector.scheduler.lookup(request.id, computedTokens);
      if (answer.state === 'known') return answer;
      ensure(Date.now() < until, `a lookup was pending for ${this.patienceMs} ms`);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }

  /** One step, of a model that writes before each layer's save what `write` says. */
  async step({
    announced = [],
    write = () => {},
    preempted = [],
  }: {
    announced?: readonly number[];
    write?: () => void;
    preempted?: readonly number[];
  } = {}): Promise<StepReport> {
    const { scheduler, worker } = this.connector;
    const orders = structuredClone(scheduler.buildStep());
    worker.beginStep(orders);
    await settled(worker.preempted(preempted), this.patienceMs, 'preempted');
    worker.startLoad();
    const layerIds = [...new Set(this.layout.groups.flatMap((group) => group.layerIds))].sort((a, b) => a - b);
    for (const layerId of layerIds) await settled(worker.waitForLayer(layerId), this.patienceMs, 'waitForLayer');
    write();
    for (const layerId of layerIds) worker.saveLayer(layerId);
    await settled(worker.waitForSave(), this.patienceMs, 'waitForSave');
    const finished = worker.finished(announced);
    const report = structuredClone({ finished, failedPages: worker.failedPages() });
    worker.endStep();
    scheduler.update(report);
    this.failed.push(...report.failedPages);
    this.saved.push(...finished.saved);
    this.loaded.push(...finished.loaded);
    return report;
  }

  /** Computes a request from nothing in steps that end at `ends`, saving as it goes, until its pages may be given back. */
  async save(request: StageRequest, ends: readonly number[] = [request.tokens.length]): Promise<void> {
    const { scheduler } = this.connector;
    scheduler.onNewRequest(request);
    let begin = 0;
    for (const end of ends) {
      const from = begin;
      scheduler.willWrite(request.id, request.blocks, end);
      await this.step({ write: () => this.compute(request, from, end) });
      begin = end;
    }
    await this.finish(request);
  }

  /** Ends a request and waits until its pages may be given back. */
  async finish(request: StageRequest): Promise<void> {
    const { delayFree } = this.connector.scheduler.requestFinished(request.id, request.blocks);
    let announced = [request.id];
    const until = Date.now() + this.patienceMs;
    while (delayFree && !this.saved.includes(request.id)) {
      await this.step({ announced });
      announced = [];
      ensure(Date.now() < until, `the pages of a finished request were kept for ${this.patienceMs} ms`);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    if (!delayFree) await this.step({ announced });
  }

  /** Loads what the connector has of a request beyond so many tokens, and answers how much that is. */
  async load(request: StageRequest, computedTokens = 0): Promise<number> {
    const { scheduler } = this.connector;
    scheduler.onNewRequest(request);
    const { tokens, async } = await this.known(request, computedTokens);
    scheduler.allocated(request.id, request.blocks, computedTokens, tokens);
    await this.step();
    if (async) {
      const until = Date.now() + this.patienceMs;
      while (!this.loaded.includes(request.id)) {
        await this.step();
        ensure(Date.now() < until, `a load took longer than ${this.patienceMs} ms`);
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
      scheduler.allocated(request.id, request.blocks, computedTokens, 0);
    }
    return tokens;
  }

  /** What the page of a block holds when a model has written it. */
  content({ tokens, scope }: StageRequest, groupId: number, numTokens: number): Uint8Array {
    let word = mixText(`${this.layout.modelFingerprint} ${scope?.loraId} ${scope?.salt} ${groupId}`);
    for (const token of tokens.slice(0, numTokens)) word = mix(word, token);
    return Uint8Array.from({ length: this.layout.groups[groupId].pageBytes }, (_, i) => mix(word, i) & 255);
  }

  /** Writes the pages of a piece of a request. */
  compute(request: StageRequest, begin: number, end: number): void {
    for (const { groupId, lifecycle } of this.layout.groups) {
      const slots = request.blocks[groupId] ?? [];
      if (lifecycle.kind === 'ssm') {
        this.memory.page(groupId, slots[0]).set(this.content(request, groupId, end));
        continue;
      }
      for (let block = Math.floor(begin / TOKENS_PER_BLOCK); block * TOKENS_PER_BLOCK < end; block++) {
        if (slots[block] < 0) continue;
        const numTokens = Math.min(end, (block + 1) * TOKENS_PER_BLOCK);
        this.memory.page(groupId, slots[block]).set(this.content(request, groupId, numTokens));
      }
    }
  }

  /** What differs from what a request should have after a load of so many tokens, page by page; failed ones are left out. */
  differences(request: StageRequest, computedTokens: number, tokens: number, groups: readonly number[]): string[] {
    const end = computedTokens + tokens;
    return groups.flatMap((groupId) => {
      const { lifecycle } = this.layout.groups[groupId];
      const slots = request.blocks[groupId] ?? [];
      if (lifecycle.kind === 'ssm') return this.#differs(request, groupId, slots[0], end) ? [`state of group ${groupId}`] : [];
      const first =
        lifecycle.windowSize === null ? 0 : Math.floor(Math.max(0, end + 1 - lifecycle.windowSize) / TOKENS_PER_BLOCK);
      const differing: string[] = [];
      for (let block = Math.max(first, computedTokens / TOKENS_PER_BLOCK); block * TOKENS_PER_BLOCK < end; block++) {
        if (slots[block] >= 0 && this.#differs(request, groupId, slots[block], (block + 1) * TOKENS_PER_BLOCK))
          differing.push(`block ${block} of group ${groupId}`);
      }
      return differing;
    });
  }

  #differs(request: StageRequest, groupId: number, slot: number, numTokens: number): boolean {
    const wanted = this.content(request, groupId, numTokens);
    return this.memory.page(groupId, slot).some((byte, i) => byte !== wanted[i]);
  }
}

/** Tells a story on a fresh connector; `other` opens another one on the same store. */
export async function onStage(
  harness: KvConnectorHarness,
  story: (stage: ConnectorStage, other: (modelFingerprint?: string) => Promise<ConnectorStage>) => Promise<void>,
): Promise<void> {
  const patienceMs = harness.patienceMs ?? DEFAULT_PATIENCE_MS;
  const connector = await harness.create();
  const others: KvConnector[] = [];
  try {
    await story(new ConnectorStage(connector, stageLayout(connector), patienceMs), async (modelFingerprint) => {
      const other = await harness.another(connector);
      others.push(other);
      return new ConnectorStage(other, stageLayout(other, modelFingerprint), patienceMs);
    });
  } finally {
    for (const each of others) await settled(each.close(), patienceMs, 'close');
    await settled(Promise.resolve(harness.destroy ? harness.destroy(connector) : connector.close()), patienceMs, 'destroy');
  }
}

export function textOf(id: number, length: number): number[] {
  return Array.from({ length }, (_, i) => 1000 * id + i);
}
