import { type ConsumerStep, reusedGroups, StepPages, type StepRequest } from '@bufferwise/adapter-kit';
import { type KvCache, KvCacheManager } from '@bufferwise/cache-manager';
import { checkInvariants } from '@bufferwise/cache-manager/testing';
import { defineCacheConfig, type LayerGroupId } from '@bufferwise/core-policy';
import { ComputeContext } from '@bufferwise/gpu-kernels';
import type { PageSource } from '@bufferwise/scratch-allocator';
import { Mamba2Consumer } from './mamba2-consumer.ts';
import type { Mamba2Layer, Mamba2Role } from './mamba2-layer.ts';
import { DirtyGpu, StackedModel, TOLERANCE } from './mamba2-rig.ts';

/** One request of a test. */
export interface TestRequest {
  readonly kv: KvCache;
  readonly tokens: readonly number[];
  readonly matched: number;
  readonly reusedGroups: ReadonlySet<LayerGroupId>;
  /** Where its next step begins. */
  next: number;
  /** What came out, by position; of drafts that were taken back, what their places got later. */
  readonly rows: Float32Array[];
}

/** What a request computes in a step. */
export interface TestPart {
  readonly request: TestRequest;
  readonly end: number;
  /** Tokens that are not the request's, from here on. Default: none. */
  readonly wrongFrom?: number;
  readonly snapshot?: boolean;
  /** Whose row it is. Default: the request's own, and what comes out is kept. */
  readonly beam?: { readonly index: number; readonly tokens: readonly number[] };
  /** Default true. */
  readonly hasSequence?: boolean;
}

/** A consumer on a stacked model and a real manager, without the conformance suite around it. */
export class RequestRig {
  readonly consumer: Mamba2Consumer;
  readonly manager: KvCacheManager;
  readonly #gpu: DirtyGpu;
  readonly #context: ComputeContext;
  readonly #model: StackedModel;
  readonly #pages: StepPages;

  constructor(device: GPUDevice, layers: readonly Mamba2Layer[]) {
    this.#context = ComputeContext.of(device);
    this.consumer = new Mamba2Consumer(this.#context, { layers });
    this.#model = new StackedModel(device, layers);
    this.#gpu = new DirtyGpu(device);
    const config = defineCacheConfig({
      tokensPerBlock: 4,
      layers: this.consumer.layers,
      tiers: [{ tier: 'device', quota: 16 << 20 }],
      maxUtilForResume: 1,
    });
    this.manager = new KvCacheManager({ config, device: this.#gpu, debugChecks: true });
    this.consumer.bind(this.manager.layout);
    this.#pages = new StepPages(this.manager.layout, this.manager.bufferGrouping.flat());
  }

  /** Opens a request on what is published, or without a look. */
  async open(tokens: readonly number[], { lookup = true } = {}): Promise<TestRequest> {
    const kv = this.manager.createKvCache(lookup ? { tokens: tokens.slice(0, -1) } : {});
    const matched = kv.numCommittedTokens;
    const plan = this.consumer.planReplay(kv.reuseStatus, matched);
    if (!(await kv.resume(plan))) throw new Error('no room for a request');
    return { kv, tokens, matched, reusedGroups: reusedGroups(kv.reuseStatus, plan, matched), next: plan.from, rows: [] };
  }

  /** What comes out of tokens in one step that shares nothing with anybody. */
  async cold(tokens: readonly number[]): Promise<readonly Float32Array[]> {
    const request = await this.open(tokens, { lookup: false });
    request.kv.stopCommitting();
    await this.step([{ request, end: tokens.length }]);
    request.kv.close();
    return request.rows;
  }

  /** One step over all parts, in their order. Each request is at the end of its tokens then, drafts included. */
  async step(parts: readonly TestPart[]): Promise<Float32Array[]> {
    for (const { request, end } of parts) {
      const { kv } = request;
      if (!kv.resize(Math.max(end, kv.historyLength), kv.historyLength)) throw new Error('no room for a step');
    }
    const seeds = parts.map(({ request, end, wrongFrom = end, beam }) => {
      const tokens = beam?.tokens ?? request.tokens;
      const written = tokens.slice(0, end).map((token, at) => (at < wrongFrom ? token : token + 7777));
      return seedsOf(written).subarray(request.next);
    });
    const outputs = await this.#model.run(this.consumer, this.#consumerStep(parts), seeds);
    for (const [i, { request, end, beam }] of parts.entries()) {
      if (beam) continue;
      const width = outputs[i].length / (end - request.next);
      for (let at = request.next; at < end; at++)
        request.rows[at] = outputs[i].subarray((at - request.next) * width, (at - request.next + 1) * width);
      request.next = end;
    }
    return outputs;
  }

  /** Takes tokens back that the last step wrote. */
  rewind(request: TestRequest, next: number): void {
    request.next = next;
    request.rows.length = next;
  }

  /** Commits what is computed. */
  commit({ kv, tokens, next }: TestRequest, options?: { snapshot?: boolean }): void {
    kv.commit(tokens.slice(kv.numCommittedTokens, next), options);
  }

  settle(...requests: readonly TestRequest[]): void {
    const compute = this.#context.step('settling');
    this.consumer.settle(this.#consumerStep(requests.map((request) => ({ request, end: request.next + 1 }))), compute);
    compute.submit();
  }

  /** What the slot of a request holds in which the page of a buffer lies. */
  async slot({ kv }: TestRequest, layerId: number, role: Mamba2Role): Promise<Uint8Array> {
    const memory = this.manager.poolMemory(layerId, role);
    const target = new Uint8Array(memory.spec.slotBytes);
    const slot = kv.ssmBlockBaseIndex(this.manager.getBufferGroupId(layerId, role));
    await this.#gpu.readSlots(memory as Parameters<DirtyGpu['readSlots']>[0], Int32Array.of(slot), target);
    return target;
  }

  async close(): Promise<void> {
    checkInvariants(this.manager);
    await this.manager.close({ force: true });
    this.consumer.close();
    this.#model.destroy();
  }

  #consumerStep(parts: readonly TestPart[]): ConsumerStep {
    const sources = parts.map(({ request: { kv }, beam }): PageSource => (beam ? kv.beam(beam.index) : kv));
    this.#pages.fill(sources, Math.max(...parts.map(({ request }) => Math.ceil(request.kv.capacity / 4))));
    const requests = parts.map(
      ({ request, end, snapshot, hasSequence = true }): StepRequest => ({
        start: request.next,
        numTokens: end - request.next,
        matched: request.matched,
        reusedGroups: request.reusedGroups,
        sequence: hasSequence ? request.kv : undefined,
        snapshot,
      }),
    );
    return { requests, pages: this.#pages, poolMemory: (layerId, role) => this.manager.poolMemory(layerId, role) };
  }
}

/** The largest difference of two sequences of rows from one position on, relative to the larger value and 1; NaN when rows are missing. */
export function differenceFrom(begin: number, found: readonly Float32Array[], expected: readonly Float32Array[]): number {
  if (found.length !== expected.length) return Number.NaN;
  let worst = 0;
  for (let at = begin; at < expected.length; at++) {
    if (found[at]?.length !== expected[at].length) return Number.NaN;
    for (const [i, wanted] of expected[at].entries()) {
      const value = found[at][i];
      const difference = Math.abs(value - wanted) / Math.max(1, Math.abs(value), Math.abs(wanted));
      if (!(difference <= worst)) worst = difference;
    }
  }
  return worst;
}

/** Throws unless the rows of a request are what its tokens give by themselves. */
export async function requireCold(rig: RequestRig, request: TestRequest, what: string): Promise<void> {
  const expected = await rig.cold(request.tokens.slice(0, request.next));
  const difference = differenceFrom(request.matched, request.rows, expected);
  if (!(difference <= TOLERANCE)) throw new Error(`${what}: rows differ by ${difference}`);
}

/** Tokens of a text that begins like no other. */
export function textOf(id: number, length: number): number[] {
  return Array.from({ length }, (_, i) => 1000 * (id + 1) + ((i * 37) % 101));
}

/** A word for each token that stands for all up to it. */
function seedsOf(tokens: readonly number[]): Uint32Array {
  const seeds = new Uint32Array(tokens.length);
  let seed = 1;
  for (const [at, token] of tokens.entries()) {
    seed = (Math.imul(seed ^ token, 0x85ebca6b) + 0x7f4a7c15) >>> 0;
    seeds[at] = seed;
  }
  return seeds;
}
