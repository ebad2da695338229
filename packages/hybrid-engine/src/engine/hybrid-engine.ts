import { type CacheStatistics, type KvCache, KvCacheManager, type PoolGroupStatistics } from '@bufferwise/cache-manager';
import { WebGpuPageDevice } from '@bufferwise/gpu-kernels';
import { cutPools } from '@bufferwise/scratch-allocator';
import type { EngineModel } from '../model/engine-model.ts';
import { Sampler } from '../sampling/sampler.ts';
import { type EngineCacheOptions, engineCacheConfig } from './cache-config.ts';
import { planChunks } from './chunk-plan.ts';
import { EngineError } from './engine-error.ts';
import { type GeneratedToken, type GenerationReport, type GenerationRequest, groupReuse } from './generation.ts';
import { GpuModel, type StepCosts } from './gpu-model.ts';
import { StepBatcher } from './step-batcher.ts';
import { maxStepTokens } from './workspace.ts';

export interface HybridEngineOptions {
  model: EngineModel;
  /** Stays the caller's, who destroys it after `close`. */
  device: GPUDevice;
  cache?: EngineCacheOptions;
  /** Tokens of one prefill step at most. Default 128. */
  chunkTokens?: number;
  /** Verifies the cache's invariants after every call. Slow; for tests. */
  debugChecks?: boolean;
}

const DEFAULT_CHUNK_TOKENS = 128;

interface EngineParts {
  model: EngineModel;
  manager: KvCacheManager;
  pageDevice: WebGpuPageDevice;
  gpuModel: GpuModel;
  chunkTokens: number;
}

/**
 * A hybrid model that answers on WebGPU, with everything it remembers in the pages of one cache manager: the index tables of
 * every step come from the manager, and nothing of a request is kept outside the pools.
 *
 * Requests that are under way at the same time share steps.
 */
export class HybridEngine {
  readonly model: EngineModel;
  readonly manager: KvCacheManager;
  readonly #pageDevice: WebGpuPageDevice;
  readonly #gpuModel: GpuModel;
  readonly #batcher: StepBatcher;
  readonly #chunkTokens: number;
  #closed = false;

  /**
   * Uploads the weights, allocates the pools and compiles the kernels.
   *
   * @throws {EngineError} `engine-options`; {ConfigError} on cache options that fit no cache; {PoolTooLargeError} when one buffer
   *   has more memory than the device can bind; whatever the device refuses
   */
  static async create(options: HybridEngineOptions): Promise<HybridEngine> {
    const { chunkTokens = DEFAULT_CHUNK_TOKENS } = options;
    const mostTokens = maxStepTokens(options.model.description, options.device.limits);
    if (!Number.isInteger(chunkTokens) || chunkTokens < 1 || chunkTokens > mostTokens) {
      throw new EngineError(
        'engine-options',
        `chunkTokens is ${chunkTokens}; it must be a whole number of tokens from 1 to ${mostTokens}, the most whose activations this device can bind`,
      );
    }
    const { maxBufferSize, maxStorageBufferBindingSize } = options.device.limits;
    const config = cutPools(engineCacheConfig(options.model.description, options.cache ?? {}, chunkTokens), {
      maxPoolBytes: Math.min(maxBufferSize, maxStorageBufferBindingSize),
    });
    const pageDevice = new WebGpuPageDevice(options.device);
    const manager = new KvCacheManager({ config, device: pageDevice, debugChecks: options.debugChecks });
    try {
      await manager.ready();
      const gpuModel = await GpuModel.create({ model: options.model, device: options.device, manager, maxTokens: chunkTokens });
      return new HybridEngine({ model: options.model, manager, pageDevice, gpuModel, chunkTokens });
    } catch (error) {
      await manager.close({ force: true });
      pageDevice.destroy();
      throw error;
    }
  }

  private constructor({ model, manager, pageDevice, gpuModel, chunkTokens }: EngineParts) {
    this.model = model;
    this.manager = manager;
    this.#pageDevice = pageDevice;
    this.#gpuModel = gpuModel;
    this.#batcher = new StepBatcher((chunks) => {
      // The pages of chunks that waited through a `close` are gone.
      this.#requireOpen();
      return gpuModel.step(chunks).then((rows) => rows.map(([logits]) => logits));
    }, chunkTokens);
    this.#chunkTokens = chunkTokens;
  }

  /** Work handed to the device since the engine was made, as counted. */
  get costs(): Readonly<StepCosts> {
    return this.#gpuModel.costs;
  }

  statistics(): CacheStatistics {
    return this.manager.statistics();
  }

  storage(): PoolGroupStatistics[] {
    return this.manager.storageStatistics(0);
  }

  /**
   * Answers a prompt, token by token; the generator returns the report. Leaving it early closes the request.
   *
   * @throws {EngineError} on a bad request, or when the cache has no room; the abort reason when `signal` says so. The
   *   request holds nothing any more then
   */
  async *generate(request: GenerationRequest): AsyncGenerator<GeneratedToken, GenerationReport, void> {
    this.#requireOpen();
    this.#checkRequest(request);
    const started = performance.now();
    const sampler = new Sampler(request.sampling);
    const prompt = Uint32Array.from(request.prompt);
    const cache = this.#openCache(request, prompt);
    try {
      const reused = cache.numCommittedTokens;
      let timeToFirstTokenMs = 0;
      let generated = 0;
      let finishReason: GenerationReport['finishReason'] = 'length';
      let { logits, computedTokens } = await this.#prefill(request, cache, prompt);
      for (;;) {
        request.onLogits?.(logits);
        const choice = sampler.choose(logits);
        generated++;
        if (generated === 1) timeToFirstTokenMs = performance.now() - started;
        yield choice;
        if (request.stopTokens?.includes(choice.token)) finishReason = 'stop';
        if (finishReason === 'stop' || generated === request.maxNewTokens) break;
        logits = await this.#compute(request, cache, Uint32Array.of(choice.token), { snapshot: false });
      }
      return {
        promptTokens: prompt.length,
        reusedTokens: reused,
        computedTokens,
        generatedTokens: generated,
        groups: groupReuse(cache),
        timeToFirstTokenMs,
        totalMs: performance.now() - started,
        finishReason,
      };
    } catch (error) {
      throw this.#closed ? closedError(error) : error;
    } finally {
      cache.close();
    }
  }

  /** Answers a prompt and returns when it is done. Errors as `generate`. */
  async complete(
    request: GenerationRequest,
  ): Promise<{ tokens: number[]; logProbabilities: number[]; report: GenerationReport }> {
    const tokens: number[] = [];
    const logProbabilities: number[] = [];
    const steps = this.generate(request);
    for (;;) {
      const next = await steps.next();
      if (next.done) return { tokens, logProbabilities, report: next.value };
      tokens.push(next.value.token);
      logProbabilities.push(next.value.logProbability);
    }
  }

  /**
   * Gives the device's memory back. Requests under way end with `engine-closed` when they need it next. Does nothing the
   * second time.
   */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.manager.close({ force: true });
    this.#pageDevice.destroy();
    this.#gpuModel.destroy();
  }

  #openCache(request: GenerationRequest, prompt: Uint32Array): KvCache {
    const { lookup = true, scope } = request;
    // The last token is always computed: its logits choose the first token of the answer.
    const tokens = lookup ? prompt.subarray(0, prompt.length - 1) : undefined;
    return this.manager.createKvCache({ tokens, scope, expectedPromptLength: prompt.length });
  }

  /** Runs what the match left of a prompt. Returns the logits after its last token, and how many tokens were run. */
  async #prefill(
    request: GenerationRequest,
    cache: KvCache,
    prompt: Uint32Array,
  ): Promise<{ logits: Float32Array; computedTokens: number }> {
    if (!(await cache.resume())) throw this.#noRoom(prompt.length);
    if (request.publish === false) cache.stopCommitting();
    const promptLength = prompt.length;
    const chunkTokens = this.#chunkTokens;
    const snapshotPoints = cache.snapshotPoints({ promptLength, turnBorders: request.turnBorders, every: chunkTokens });
    const ends = planChunks({ matched: cache.numCommittedTokens, promptLength, chunkTokens, snapshotPoints });
    let logits: Float32Array = new Float32Array(0);
    let computedTokens = 0;
    for (const end of ends) {
      const tokens = prompt.subarray(cache.historyLength, end);
      logits = await this.#compute(request, cache, tokens, { snapshot: true });
      computedTokens += tokens.length;
    }
    return { logits, computedTokens };
  }

  /** Puts tokens through the model, behind what the request has written. Returns the logits after the last one. */
  async #compute(
    request: GenerationRequest,
    cache: KvCache,
    tokens: Uint32Array,
    { snapshot }: { snapshot: boolean },
  ): Promise<Float32Array> {
    request.signal?.throwIfAborted();
    this.#requireOpen();
    const start = cache.historyLength;
    const end = start + tokens.length;
    if (!cache.resize(end, start)) throw this.#noRoom(end);
    const { submitted, logits } = this.#batcher.add({ cache, tokens, start });
    await submitted;
    // Behind the kernels in the queue, so the copies that a commit makes find what they wrote.
    if (request.publish === false) cache.resize(end, end);
    else cache.commit(tokens, { snapshot });
    return logits;
  }

  #checkRequest({ prompt, maxNewTokens, turnBorders = [] }: GenerationRequest): void {
    const { vocabSize } = this.model.description;
    if (prompt.length === 0) throw new EngineError('prompt-invalid', 'the prompt has no tokens; give at least one');
    for (let i = 0; i < prompt.length; i++) {
      if (Number.isInteger(prompt[i]) && prompt[i] >= 0 && prompt[i] < vocabSize) continue;
      throw new EngineError(
        'prompt-invalid',
        `token ${i} of the prompt is ${prompt[i]}; this model has tokens 0 to ${vocabSize - 1}`,
      );
    }
    if (!Number.isInteger(maxNewTokens) || maxNewTokens < 1) {
      throw new EngineError('engine-options', `maxNewTokens is ${maxNewTokens}; it must be a whole number, at least 1`);
    }
    for (const border of turnBorders) {
      if (Number.isInteger(border) && border > 0 && border <= prompt.length) continue;
      throw new EngineError(
        'engine-options',
        `turn border ${border} is not a token count of a prompt of ${prompt.length} tokens`,
      );
    }
    const mostTokens = this.manager.clampSequenceLength(prompt.length + maxNewTokens - 1);
    if (prompt.length + maxNewTokens - 1 > mostTokens) {
      throw new EngineError(
        'prompt-too-long',
        `the prompt has ${prompt.length} tokens and ${maxNewTokens} are to be generated, but the cache holds at most ${mostTokens} tokens of one request; ` +
          'give the cache more memory, or shorten the prompt',
      );
    }
  }

  #noRoom(tokens: number): EngineError {
    return new EngineError(
      'cache-full',
      `the cache has no room for ${tokens} tokens of this request now: other requests hold its pages; try again when one is done, or give the cache more memory`,
    );
  }

  #requireOpen(): void {
    if (this.#closed) throw closedError();
  }
}

/** @param cause what a request ran into when its memory was gone */
function closedError(cause?: unknown): EngineError {
  return new EngineError('engine-closed', 'the engine was closed; make a new one', cause === undefined ? {} : { cause });
}
