import { type CreateKvCacheOptions, KvCacheManager, type PageDevice } from '@bufferwise/cache-manager';
import { checkInvariants } from '@bufferwise/cache-manager/testing';
import { type CacheConfigInput, defineCacheConfig } from '@bufferwise/core-policy';
import { type PageSource, StorageLayout } from '@bufferwise/scratch-allocator';
import type { ConsumerAdapter, StepRequest } from '../../consumer/consumer-adapter.ts';
import { reusedGroups } from '../../consumer/replay.ts';
import { StepPages } from '../../consumer/step-pages.ts';
import { ensure, settled } from '../assertions.ts';
import { DEFAULT_PATIENCE_MS } from '../suite.ts';
import { DirtyDevice } from './dirty-device.ts';
import type { ConsumerHarness, ConsumerMix } from './harness.ts';
import { type Row, Sequence, seedsOf, type Tokens } from './sequence.ts';

export interface StageOptions {
  /** Scratch in prefill steps. Default false. */
  readonly scratch?: boolean;
  /** Tokens that may be taken back in a step with scratch. Default 0. */
  readonly maxRewindLen?: number;
}

/** What a step computes: a sequence up to a position, or a row that stands for one of its beams. */
export interface Part {
  readonly sequence: Sequence;
  readonly end: number;
  /** For beams: whose pages, and which tokens. */
  readonly beam?: { readonly index: number; readonly tokens: Tokens };
  /** `false`: the commit behind the step takes no snapshot. */
  readonly snapshot?: boolean;
}

const GRAIN = 2 << 20;
/** Blocks that every pool has room for, at least. */
const ROOM_BLOCKS = 96;

/** A consumer at work on a real manager, with all invariants checked after every call. */
export class ConsumerStage<Work> {
  readonly manager: KvCacheManager;
  readonly device: PageDevice;
  readonly consumer: ConsumerAdapter<Work>;
  readonly tolerance: number;
  readonly tokensPerBlock: number;
  readonly #harness: ConsumerHarness<Work>;
  readonly #pages: StepPages;

  private constructor(
    harness: ConsumerHarness<Work>,
    consumer: ConsumerAdapter<Work>,
    manager: KvCacheManager,
    device: PageDevice,
  ) {
    this.#harness = harness;
    this.consumer = consumer;
    this.manager = manager;
    this.device = device;
    this.tolerance = harness.tolerance ?? 0;
    this.tokensPerBlock = manager.layout.tokensPerBlock;
    const bufferIds = consumer.layers.flatMap(({ layerId, buffers }) =>
      buffers.filter(({ size }) => size > 0).map(({ role }) => ({ layerId, role })),
    );
    this.#pages = new StepPages(manager.layout, bufferIds);
  }

  /** Tells a story on a mix, then closes everything. */
  static async tell<Work>(
    harness: ConsumerHarness<Work>,
    mix: ConsumerMix,
    options: StageOptions,
    story: (stage: ConsumerStage<Work>) => Promise<void>,
  ): Promise<void> {
    const consumer = await harness.create(mix);
    try {
      const config = stageConfig(consumer, harness, options);
      const layout = StorageLayout.fromConfig(defineCacheConfig(config));
      consumer.bind(layout, { scratch: options.scratch ?? false });
      const device = (await harness.device?.()) ?? new DirtyDevice();
      const manager = new KvCacheManager({ config: defineCacheConfig(config), device, debugChecks: true });
      // Once more, now that there is memory: tables are made with the manager's own layout.
      consumer.bind(manager.layout, { scratch: options.scratch ?? false });
      try {
        await story(new ConsumerStage(harness, consumer, manager, device));
        checkInvariants(manager);
      } finally {
        await manager.close({ force: true });
      }
    } finally {
      await (harness.destroy ? harness.destroy(consumer) : consumer.close());
    }
  }

  /** Opens a request on what is published and takes it onto the device, as the consumer plans it. */
  async open(tokens: Tokens, options: Omit<CreateKvCacheOptions, 'tokens'> & { lookup?: boolean } = {}): Promise<Sequence> {
    const { lookup = true, ...rest } = options;
    // The last token is always computed: something has to come out.
    const kv = this.manager.createKvCache(lookup ? { ...rest, tokens: tokens.slice(0, -1) } : rest);
    const matched = kv.numCommittedTokens;
    const plan = this.consumer.planReplay(kv.reuseStatus, matched);
    ensure(
      Number.isSafeInteger(plan.from) && plan.from >= 0 && plan.from <= matched,
      `planReplay wants to begin at token ${plan.from} of a match of ${matched}`,
    );
    ensure(
      this.consumer.supports.replay || (plan.from === matched && plan.rebuiltGroups.length === 0),
      `planReplay wants tokens again from ${plan.from} on, and supports.replay is false`,
    );
    const { optionalReuseGroups, rebuiltGroups } = plan;
    ensure(await kv.resume({ optionalReuseGroups, rebuiltGroups }), 'the suite found no room for a request');
    return new Sequence(kv, tokens, plan.from, reusedGroups(kv.reuseStatus, plan, matched));
  }

  /** Runs one step over all parts; a beam comes after its request has room. */
  async step(parts: readonly Part[]): Promise<Row[][]> {
    for (const { sequence, end } of parts) {
      const { kv } = sequence;
      ensure(kv.resize(Math.max(end, kv.historyLength), kv.historyLength), 'the suite found no room for a step');
    }
    const maxBlocks = Math.max(...parts.map(({ sequence }) => Math.ceil(sequence.kv.capacity / this.tokensPerBlock)));
    const sources = parts.map(({ sequence, beam }): PageSource => (beam ? sequence.kv.beam(beam.index) : sequence.kv));
    this.#pages.fill(sources, maxBlocks);
    const requests = parts.map(
      ({ sequence: { kv, next, matched, reusedGroups }, end, snapshot }): StepRequest => ({
        start: next,
        numTokens: end - next,
        matched,
        reusedGroups,
        sequence: kv,
        snapshot,
      }),
    );
    const seeds = parts.map(({ sequence, end, beam }) => seedsOf(beam?.tokens ?? sequence.tokens).subarray(sequence.next, end));
    const step = {
      requests,
      pages: this.#pages,
      poolMemory: (layerId: number, role: string) => this.manager.poolMemory(layerId, role),
    };
    const running = Promise.resolve(this.#harness.run(this.consumer, step, seeds));
    const outputs = await settled(running, this.#harness.patienceMs ?? DEFAULT_PATIENCE_MS, 'a step');
    const rows = outputs.map((values, i) => rowsOf(values, requests[i].numTokens));
    for (const [i, { sequence, end, beam }] of parts.entries()) {
      if (beam) continue;
      rows[i].forEach((row, at) => {
        if (sequence.next + at >= sequence.matched) sequence.rows[sequence.next + at] = row;
      });
      sequence.next = end;
    }
    return rows;
  }

  /** Computes a sequence up to each of the ends, and commits there. */
  async run(sequence: Sequence, ends: readonly number[] = [sequence.tokens.length]): Promise<void> {
    for (const end of ends) {
      if (end <= sequence.kv.numCommittedTokens) continue;
      await this.step([{ sequence, end }]);
      sequence.commit(end);
    }
  }

  /**
   * A request from beginning to end. Returns what came out, and how much was reused.
   *
   * @param ends where it commits. Default: before the last token and behind it, as engines do, so that the same prompt finds a snapshot
   */
  async serve(tokens: Tokens, ends: readonly number[] = [tokens.length - 1, tokens.length]): Promise<Sequence> {
    const sequence = await this.open(tokens);
    await this.run(sequence, ends);
    sequence.kv.close();
    return sequence;
  }

  /** What comes out of tokens that share nothing with anybody, computed in one step and published nowhere. */
  async cold(tokens: Tokens): Promise<readonly Row[]> {
    const sequence = await this.open(tokens, { lookup: false });
    sequence.kv.stopCommitting();
    await this.step([{ sequence, end: tokens.length }]);
    sequence.kv.close();
    return sequence.rows;
  }

  /** The same token by token, so that no step has scratch. */
  async coldByToken(tokens: Tokens): Promise<readonly Row[]> {
    const sequence = await this.open(tokens, { lookup: false });
    sequence.kv.stopCommitting();
    for (let end = 1; end <= tokens.length; end++) {
      await this.step([{ sequence, end }]);
      sequence.kv.resize(null, end);
    }
    sequence.kv.close();
    return sequence.rows;
  }

  /** Lets a request take all pages that nobody holds, and give them back: what was published is evicted, last used first to stay. */
  async evictBy(tokens: Tokens): Promise<void> {
    const { kv } = await this.open(tokens, { lookup: false });
    kv.stopCommitting();
    for (let step = 1 << 13; step >= this.tokensPerBlock; step >>= 1) kv.resize(kv.capacity + step);
    kv.close();
  }
}

function stageConfig<Work>(
  { layers, supports }: ConsumerAdapter<Work>,
  { tokensPerBlock = 4 }: ConsumerHarness<Work>,
  { scratch = false, maxRewindLen = 0 }: StageOptions,
): CacheConfigInput {
  const layout = StorageLayout.fromConfig(
    defineCacheConfig({ tokensPerBlock, layers, tiers: [{ tier: 'device', quota: GRAIN }] }),
  );
  const grains = layout.poolGroups.flatMap(({ pools }) =>
    pools.map(({ slotBytes }) => Math.ceil((slotBytes * ROOM_BLOCKS) / GRAIN)),
  );
  return {
    tokensPerBlock,
    layers,
    tiers: [{ tier: 'device', quota: GRAIN * grains.reduce((sum, count) => sum + count, 0) }],
    enablePartialReuse: supports.partialBlocks,
    maxUtilForResume: 1,
    ...(scratch ? { swaScratchReuse: { maxRewindLen } } : {}),
  };
}

function rowsOf(values: ArrayLike<number>, numTokens: number): Row[] {
  const width = values.length / numTokens;
  ensure(Number.isInteger(width) && width > 0, `${values.length} values came out for ${numTokens} tokens`);
  return Array.from({ length: numTokens }, (_, i) => Array.from({ length: width }, (__, j) => values[i * width + j]));
}
