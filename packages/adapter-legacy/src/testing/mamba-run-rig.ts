import { StepPages } from '@bufferwise/adapter-kit';
import type { KvCache, KvCacheManager } from '@bufferwise/cache-manager';
import type { LayerGroupId } from '@bufferwise/core-policy';
import { afterReplay, ComputeContext, type ReplayCursor, type ReplayRing, settlesRing } from '@bufferwise/gpu-kernels';
import { LegacyMambaConsumer } from '../mamba/legacy-mamba-consumer.ts';
import type { LegacyMambaLayer } from '../mamba/mamba-layer.ts';
import { TOKENS_PER_BLOCK } from './attention-rig.ts';
import { DirtyWebGpuDevice } from './dirty-device-rig.ts';
import { MambaInputs } from './mamba-rig.ts';
import { startEngine } from './start-rig.ts';

/** A request of an engine that drafts: it keeps the cursor, as it alone knows which tokens it kept. */
export interface DraftingRequest {
  readonly kv: KvCache;
  cursor: ReplayCursor;
}

/** An engine as they were written for layer-based managers: prompts by scan, decode from the ring with drafts, cursors of its own. */
export class MambaRun {
  readonly manager: KvCacheManager;
  readonly #context: ComputeContext;
  readonly #consumer: LegacyMambaConsumer;
  readonly #inputs: MambaInputs;
  readonly #pages: StepPages;
  readonly #ring: ReplayRing | undefined;

  constructor(device: GPUDevice, layers: readonly LegacyMambaLayer[], ring?: ReplayRing) {
    this.#context = ComputeContext.of(device);
    this.#consumer = new LegacyMambaConsumer(this.#context, { layers, ring });
    this.#inputs = new MambaInputs(device);
    this.#ring = ring;
    this.manager = startEngine(this.#consumer, new DirtyWebGpuDevice(device));
    this.#pages = new StepPages(this.manager.layout, this.#consumer.tableBuffers);
  }

  async open(tokens: readonly number[] = []): Promise<DraftingRequest> {
    const kv = this.manager.createKvCache({ tokens });
    if (!(await kv.resume())) throw new Error('no room for a request');
    return { kv, cursor: { position: kv.numCommittedTokens, length: 0 } };
  }

  /** One step of these seeds; answers with the outputs of each request. `cursors`: whether it replays. */
  async step(
    parts: readonly { request: DraftingRequest; seeds: readonly number[] }[],
    replays: boolean,
  ): Promise<Float32Array[]> {
    const step = this.#consumerStep(
      parts.map(({ request }) => request),
      parts.map(({ seeds }) => seeds.length),
    );
    const compute = this.#context.step('test');
    const all = Uint32Array.from(parts.flatMap(({ seeds }) => seeds));
    const cursors = replays ? parts.map(({ request }) => request.cursor) : undefined;
    this.#consumer.record(step, { compute, cursors, rows: (layerId) => this.#inputs.rows(compute, all, layerId) });
    return this.#inputs.outputs.submit(
      compute,
      this.#consumer.layers.map(({ layerId }) => layerId),
      parts.map(({ seeds }) => seeds.length),
    );
  }

  /** Keeps the first tokens of a step that replayed `numTokens`. */
  accept(request: DraftingRequest, numTokens: number, numAccepted: number): void {
    const settled = settlesRing(this.#ring as ReplayRing, request.cursor, numTokens);
    request.cursor = afterReplay(request.cursor, settled, numAccepted);
  }

  /** Brings the state up to the ring, as before a snapshot. */
  settle(request: DraftingRequest): void {
    const step = this.#consumerStep([request], [1]);
    const compute = this.#context.step('settle');
    const begun = this.#consumer.settle(step, compute, [request.cursor]);
    for (const { layerId } of this.#consumer.layers)
      begun.layer(layerId, this.#inputs.rows(compute, new Uint32Array(0), layerId));
    compute.submit();
    request.cursor = afterReplay(request.cursor, true, 0);
  }

  async close(): Promise<void> {
    await this.manager.close({ force: true });
    this.#consumer.close();
    this.#inputs.outputs.destroy();
  }

  #consumerStep(requests: readonly DraftingRequest[], tokensPerRequest: readonly number[]) {
    requests.forEach(({ kv, cursor }, i) => {
      if (!kv.resize(Math.max(kv.capacity, cursor.position + tokensPerRequest[i]))) throw new Error('no room for a step');
    });
    const maxBlocks = Math.max(...requests.map(({ kv }) => Math.ceil(kv.capacity / TOKENS_PER_BLOCK)));
    this.#pages.fill(
      requests.map(({ kv }) => kv),
      maxBlocks,
    );
    return {
      requests: requests.map(({ kv, cursor }, i) => ({
        start: cursor.position,
        numTokens: tokensPerRequest[i],
        matched: 0,
        reusedGroups: new Set<LayerGroupId>(kv.reuseStatus.map(({ groupId }) => groupId)),
      })),
      pages: this.#pages,
      poolMemory: (layerId: number, role: string) => this.manager.poolMemory(layerId, role),
    };
  }
}
