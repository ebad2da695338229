import type { ArrivedRequest, TransferReport, TransferWorkerOptions } from '@bufferwise/adapter-disaggregation';
import { type ConnectorLayout, connectorLayout } from '@bufferwise/adapter-kit';
import { type CacheStatistics, KvCacheManager, type KvEventSink, type PoolGroupStatistics } from '@bufferwise/cache-manager';
import { WebGpuPageDevice } from '@bufferwise/gpu-kernels';
import { cutPools } from '@bufferwise/scratch-allocator';
import type { MemoryOptions } from '../description/cache-layers.ts';
import { pageNumbers } from '../description/page-numbers.ts';
import type { EngineModel } from '../model/engine-model.ts';
import { transferForms } from '../moves/transfer-forms.ts';
import { type OutsideCounts, type OutsideOptions, OutsidePrefixes } from '../outside/outside-prefixes.ts';
import { copyPages } from '../reuse/copy-pages.ts';
import { lookBacks, ModelMemory } from '../reuse/model-memory.ts';
import { ReuseOpener } from '../reuse/open-reuse.ts';
import { Sampler } from '../sampling/sampler.ts';
import { AnswerTask } from '../scheduler/answer-task.ts';
import { BeamTask } from '../scheduler/beam-task.ts';
import type { PromptRequest, TaskCounts, TaskHost } from '../scheduler/generation-task.ts';
import { PrefillTask, type StartMove } from '../scheduler/prefill-task.ts';
import { Scheduler, type SchedulerCounts, type SchedulerLoad } from '../scheduler/scheduler.ts';
import type { NgramOptions } from '../speculation/ngram-drafts.ts';
import type { BeamRequest, BeamResult } from './beam-search.ts';
import { type EngineCacheOptions, engineCacheConfig } from './cache-config.ts';
import { checkRequest, type RequestLimits, requireCount } from './check-request.ts';
import { type Completion, readToEnd } from './completion.ts';
import { EngineError } from './engine-error.ts';
import type { GeneratedToken, GenerationReport, GenerationRequest } from './generation.ts';
import { GpuModel, type StepCosts } from './gpu-model.ts';
import { maxStepTokens } from './workspace.ts';

export interface HybridEngineOptions {
  model: EngineModel;
  /** Stays the caller's, who destroys it after `close`. */
  device: GPUDevice;
  cache?: EngineCacheOptions;
  /** Tokens of one request in one step at most, and the grid on which prompts are cut. Default 128. */
  chunkTokens?: number;
  /** Tokens of all requests together in one step at most. Default `chunkTokens`. */
  stepTokens?: number;
  /** Requests on the device at the same time. Default 64. */
  maxActive?: number;
  /** Guesses tokens of greedy and of drawn answers from what was said before, and computes several in one step. Default: one by one. */
  speculation?: NgramOptions;
  /** Keeps prefixes outside of the process, too, where later ones and other machines find them. Default: nowhere. */
  outside?: OutsideOptions;
  /** Told which pages become reusable, move, and are forgotten. Default: nobody. */
  events?: KvEventSink;
  /** Verifies the cache's invariants after every call. Slow; for tests. */
  debugChecks?: boolean;
}

const DEFAULT_CHUNK_TOKENS = 128;
const DEFAULT_MAX_ACTIVE = 64;

/** How a prompt fared that was read for another worker. */
export interface PrefillResult {
  readonly transfer: TransferReport;
  /** What reading it took. */
  readonly counts: Readonly<TaskCounts>;
}

interface EngineParts {
  options: HybridEngineOptions;
  manager: KvCacheManager;
  pageDevice: WebGpuPageDevice;
  gpuModel: GpuModel;
  outside: OutsidePrefixes | null;
}

/** What a step may hold, with nothing left to default. */
interface StepLimits {
  chunkTokens: number;
  stepTokens: number;
}

/**
 * A hybrid model that answers on WebGPU, with everything it remembers in the pages of one cache manager: the index tables of
 * every step come from the manager, and nothing of a request is kept outside the pools.
 *
 * Requests that are under way at the same time share steps; see `Scheduler` for who comes first.
 */
export class HybridEngine {
  readonly model: EngineModel;
  readonly manager: KvCacheManager;
  readonly #pageDevice: WebGpuPageDevice;
  readonly #gpuModel: GpuModel;
  readonly #scheduler: Scheduler;
  readonly #host: TaskHost;
  readonly #stepTokens: number;
  readonly #speculation: NgramOptions | null;
  readonly #storage: EngineCacheOptions['storage'];
  readonly #outside: OutsidePrefixes | null;
  readonly #pageNumbers: ReturnType<typeof pageNumbers>;
  #numRequests = 0;
  #closed = false;

  /**
   * Uploads the weights, allocates the pools and compiles the kernels.
   *
   * @throws {EngineError} `engine-options`; {ConfigError} on cache options that fit no cache; {PoolTooLargeError} when one buffer
   *   has more memory than the device can bind; whatever the device refuses
   */
  static async create(options: HybridEngineOptions): Promise<HybridEngine> {
    const { chunkTokens, stepTokens } = stepLimits(options);
    const memory = memoryOptions(options);
    const { maxBufferSize, maxStorageBufferBindingSize } = options.device.limits;
    const config = cutPools(
      engineCacheConfig(options.model.description, options.cache ?? {}, {
        memory,
        chunkTokens,
        maxDrafts: options.speculation?.maxDrafts,
      }),
      {
        maxPoolBytes: Math.min(maxBufferSize, maxStorageBufferBindingSize),
      },
    );
    const pageDevice = new WebGpuPageDevice(options.device);
    const { events, debugChecks } = options;
    const manager = new KvCacheManager({ config, device: pageDevice, events, debugChecks });
    try {
      await manager.ready();
      const outside = outsideOf(options, manager, pageDevice);
      const gpuModel = await GpuModel.create({
        model: options.model,
        device: options.device,
        manager,
        maxTokens: stepTokens,
        memory,
      });
      return new HybridEngine({ options, manager, pageDevice, gpuModel, outside });
    } catch (error) {
      await manager.close({ force: true });
      pageDevice.destroy();
      throw error;
    }
  }

  private constructor({ options, manager, pageDevice, gpuModel, outside }: EngineParts) {
    const { model, maxActive = DEFAULT_MAX_ACTIVE, speculation = null } = options;
    const { chunkTokens, stepTokens } = stepLimits(options);
    this.model = model;
    this.manager = manager;
    this.#pageDevice = pageDevice;
    this.#gpuModel = gpuModel;
    this.#stepTokens = stepTokens;
    this.#speculation = speculation;
    this.#storage = options.cache?.storage;
    this.#outside = outside;
    this.#pageNumbers = pageNumbers(model.description, memoryOptions(options));
    this.#scheduler = new Scheduler({
      run: (chunks) => gpuModel.step(chunks),
      maxStepTokens: stepTokens,
      maxActive,
      hasColderTier: (options.cache?.hostBytes ?? 0) > 0,
    });
    const memory = new ModelMemory(manager, lookBacks(model.description), gpuModel);
    this.#host = {
      chunkTokens,
      blockTokens: manager.layout.tokensPerBlock,
      outsideBlockTokens: outside === null ? 0 : manager.layout.tokensPerBlock,
      reuse: new ReuseOpener(manager, memory, (from, to, groups) => copyPages(manager, pageDevice, from, to, groups)),
      settle: (cache) => gpuModel.settle(cache),
      ask: (task) => this.#scheduler.ask(task),
      ended: (task) => this.#scheduler.remove(task),
    };
  }

  /** Work handed to the device since the engine was made, as counted. */
  get costs(): Readonly<StepCosts> {
    return this.#gpuModel.costs;
  }

  statistics(): CacheStatistics {
    return this.manager.statistics();
  }

  /** How often requests made way for others. */
  get preemptions(): Readonly<SchedulerCounts> {
    return this.#scheduler.counts;
  }

  /** Answers and beam searches under way, as they are at this moment. */
  get load(): Readonly<SchedulerLoad> {
    return this.#scheduler.load;
  }

  /** What came from outside of the process, and what was saved there; null where nothing is kept outside. */
  get outside(): Readonly<OutsideCounts> | null {
    return this.#outside?.counts ?? null;
  }

  /** Settles when everything that is to be saved outside has been. */
  async saved(): Promise<void> {
    await this.#outside?.settled();
  }

  /**
   * What of the pages may leave the process, and how the numbers lie in them: for stores and files of prefixes of this model.
   *
   * @param fingerprint of the model, as in `outside`
   */
  connectorLayout(fingerprint: string): ConnectorLayout {
    return connectorLayout(this.manager, fingerprint, this.#pageNumbers);
  }

  storage(): PoolGroupStatistics[] {
    return this.manager.storageStatistics(0);
  }

  /**
   * Answers a prompt, token by token; the generator returns the report. Leaving it early ends the request. It is in a step only
   * while somebody waits for its next token.
   *
   * @throws {EngineError} on a bad request, or when others than requests of this engine hold the cache; the abort reason when `signal`
   *   says so. The request holds nothing any more then
   */
  async *generate(request: GenerationRequest): AsyncGenerator<GeneratedToken, GenerationReport, void> {
    this.#requireOpen();
    checkRequest(this.#limits, request);
    return yield* this.#read(this.#taskOf(request, new Sampler(request.sampling), 0), request);
  }

  /**
   * Several answers to one prompt, which is computed once. Each is read by itself, like that of `generate`; the random numbers of answer i
   * follow from `sampling.seed + i`. They take part once they are read; read each to its end, or leave it.
   *
   * @param numAnswers at least 1
   * @throws {EngineError} as `generate`, at once
   */
  generateSeveral(request: GenerationRequest, numAnswers: number): AsyncGenerator<GeneratedToken, GenerationReport, void>[] {
    return this.#severalTasks(request, numAnswers).map((task) => this.#read(task, request));
  }

  /** Answers a prompt and returns when it is done. Errors as `generate`. */
  async complete(request: GenerationRequest): Promise<Completion> {
    return readToEnd(this.generate(request));
  }

  /** Answers a prompt several times, and returns when all answers are done. Errors as `generate`. */
  async completeSeveral(request: GenerationRequest, numAnswers: number): Promise<Completion[]> {
    return Promise.all(this.generateSeveral(request, numAnswers).map(readToEnd));
  }

  /**
   * Searches for the most likely answers to a prompt.
   *
   * @throws {EngineError} as `generate`
   */
  async beamSearch(request: BeamRequest): Promise<BeamResult> {
    this.#requireOpen();
    checkRequest(this.#limits, request);
    requireCount('beamWidth', request.beamWidth, this.#stepTokens);
    if (!Number.isFinite(request.lengthPenalty ?? 1))
      throw new EngineError('engine-options', `lengthPenalty is ${request.lengthPenalty}; it must be a finite number`);
    const task = new BeamTask(this.#host, request, this.#numRequests++);
    try {
      return { answers: await task.answers(), ...task.counts };
    } catch (error) {
      throw this.#closed ? closedError(error) : error;
    } finally {
      task.end();
    }
  }

  /** What the ends of transfers work on, besides a connection and the model's fingerprint (`modelFingerprint`). Close them before the engine. */
  get transferOptions(): Pick<TransferWorkerOptions, 'manager' | 'device' | 'forms'> {
    const { manager, model } = this;
    return { manager, device: this.#pageDevice, forms: transferForms(model.description, this.#storage) };
  }

  /**
   * Reads a prompt for another worker, which answers it: all but its last token are computed here, and their pages move while they are. The
   * last token is the other worker's, as its logits choose the first of the answer: so whatever a choice depends on, a seed above all, is
   * in one place. What the prompt leaves in the cache stays.
   *
   * @param start hands the request to a `TransferSender`, under a name and as a try of its own
   * @throws {EngineError} on a bad request, and `prompt-invalid` on a prompt of one token, of which nothing would move; what `start` throws; the
   *   abort reason when `signal` says so, after which the other worker holds nothing either. A transfer that ends otherwise than
   *   `complete` is an answer, not an error
   */
  async prefillFor(request: PromptRequest, start: StartMove): Promise<PrefillResult> {
    this.#requireOpen();
    checkRequest(this.#limits, { ...request, maxNewTokens: 1 });
    if (request.prompt.length < 2)
      throw new EngineError(
        'prompt-invalid',
        'a prompt of one token has nothing to be read ahead; answer it where it is to be answered',
      );
    const task = new PrefillTask(this.#host, request, this.#numRequests++);
    try {
      await this.#loadOutside(request, task.tokens);
      this.#requireOpen();
      return { transfer: await task.move(start), counts: task.counts };
    } catch (error) {
      throw this.#closed ? closedError(error) : error;
    } finally {
      task.end();
      this.#saveOutside(request, [task.tokens.subarray(0, request.prompt.length - 1)]);
    }
  }

  /**
   * Answers a prompt that another worker has read, like `generate`, and with the same tokens. The cache is the caller's until the first token is
   * asked for, and the engine's from then on.
   *
   * @param request as it would be for `generate`
   * @throws {EngineError} as `generate`, and `arrival-invalid` when the cache is not active or not at the last token of the prompt
   */
  async *continueFrom(
    arrived: Pick<ArrivedRequest, 'cache'>,
    request: GenerationRequest,
  ): AsyncGenerator<GeneratedToken, GenerationReport, void> {
    const [answer] = this.continueSeveral(arrived, request, 1);
    return yield* answer;
  }

  /**
   * Several answers to one prompt that another worker has read, like `generateSeveral`, and with the same tokens. The cache is the engine's from
   * here on, unless it throws.
   *
   * @param numAnswers at least 1
   * @throws {EngineError} as `continueFrom`, at once
   */
  continueSeveral(
    { cache }: Pick<ArrivedRequest, 'cache'>,
    request: GenerationRequest,
    numAnswers: number,
  ): AsyncGenerator<GeneratedToken, GenerationReport, void>[] {
    const tasks = this.#severalTasks(request, numAnswers);
    const { status, historyLength } = cache;
    if (status !== 'active' || historyLength !== request.prompt.length - 1)
      throw new EngineError(
        'arrival-invalid',
        `the request that came is ${status} and has ${historyLength} tokens, but a prompt of ${request.prompt.length} goes on from an active ` +
          `one with ${request.prompt.length - 1}; give the prompt that the other worker has read`,
      );
    tasks[0].arrive(cache);
    return tasks.map((task) => this.#read(task, request));
  }

  /**
   * Says that others than requests of this engine hold pages, such as a request on its way here, until a promise settles. Requests that find no
   * room wait for that, where they would otherwise fail with `cache-full`.
   */
  waitFor(others: Promise<unknown>): void {
    this.#scheduler.waitFor(others);
  }

  /**
   * Gives the device's memory back. Requests under way end with `engine-closed`. Does nothing the second time.
   */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#scheduler.failAll(closedError());
    await this.#outside?.close();
    await this.manager.close({ force: true });
    this.#pageDevice.destroy();
    this.#gpuModel.destroy();
  }

  /** Siblings, of which the first computes the prompt. */
  #severalTasks(request: GenerationRequest, numAnswers: number): AnswerTask[] {
    this.#requireOpen();
    checkRequest(this.#limits, request);
    requireCount('numAnswers', numAnswers);
    const seed = request.sampling?.seed ?? 0;
    const samplers = Array.from({ length: numAnswers }, (_, i) => new Sampler({ ...request.sampling, seed: seed + i }));
    const tasks = samplers.map((sampler, i) => this.#taskOf(request, sampler, i));
    tasks[0].lead(tasks.slice(1));
    return tasks;
  }

  #taskOf(request: GenerationRequest, sampler: Sampler, ordinal: number): AnswerTask {
    const speculation = this.#speculation;
    return new AnswerTask(this.#host, request, { arrival: this.#numRequests++, ordinal, sampler, speculation });
  }

  async *#read(task: AnswerTask, { onReport }: GenerationRequest): AsyncGenerator<GeneratedToken, GenerationReport, void> {
    try {
      this.#requireOpen();
      // Siblings leave it to the one that computes their prompt; a request that came from elsewhere has it.
      if (!task.follows && !task.holding) await this.#loadOutside(task.request, task.tokens);
      for (;;) {
        const token = await task.next();
        if (token === null) return task.report();
        yield token;
      }
    } catch (error) {
      throw this.#closed ? closedError(error) : error;
    } finally {
      task.end();
      // What is needed to go on from the prompt, for who asks the same, and from the answer, for the next turn.
      this.#saveOutside(task.request, [task.tokens.subarray(0, task.request.prompt.length - 1), task.tokens]);
      onReport?.(task.report(), task.ordinal);
    }
  }

  /** Whoever gives up does not wait for the end of it. */
  async #loadOutside({ lookup = true, scope, signal }: PromptRequest, tokens: Uint32Array): Promise<void> {
    if (this.#outside === null || !lookup) return;
    signal?.throwIfAborted();
    // With its last token, which no connector loads: it would leave out another one.
    await orAborted(this.#outside.load(tokens, scope), signal);
  }

  #saveOutside({ publish, scope }: PromptRequest, prefixes: readonly Uint32Array[]): void {
    if (publish === false || this.#closed) return;
    this.#outside?.save(prefixes, scope);
  }

  get #limits(): RequestLimits {
    return { vocabSize: this.model.description.vocabSize, manager: this.manager };
  }

  #requireOpen(): void {
    if (this.#closed) throw closedError();
  }
}

/** @param cause what a request ran into when its memory was gone */
function closedError(cause?: unknown): EngineError {
  return new EngineError('engine-closed', 'the engine was closed; make a new one', cause === undefined ? {} : { cause });
}

/** @throws {EngineError} `engine-options` */
function stepLimits({
  model,
  device,
  chunkTokens = DEFAULT_CHUNK_TOKENS,
  stepTokens = chunkTokens,
  ...rest
}: HybridEngineOptions): StepLimits {
  const most = maxStepTokens(model.description, device.limits);
  const why = ', the most whose activations this device can bind';
  requireCount('chunkTokens', chunkTokens, most, why);
  requireCount('stepTokens', stepTokens, most, why);
  requireCount('maxActive', rest.maxActive ?? DEFAULT_MAX_ACTIVE);
  if (rest.speculation !== undefined) {
    const { maxDrafts, maxNgram = 1, minNgram = 1 } = rest.speculation;
    requireCount('speculation.maxDrafts', maxDrafts, stepTokens - 1);
    requireCount('speculation.maxNgram', maxNgram);
    requireCount('speculation.minNgram', minNgram);
  }
  return { chunkTokens: Math.min(chunkTokens, stepTokens), stepTokens };
}

function outsideOf(options: HybridEngineOptions, manager: KvCacheManager, device: WebGpuPageDevice): OutsidePrefixes | null {
  const { outside, model } = options;
  if (outside === undefined) return null;
  const layout = connectorLayout(manager, outside.modelFingerprint, pageNumbers(model.description, memoryOptions(options)));
  return new OutsidePrefixes(manager, device, layout, outside);
}

/** Drafts are taken back out of replay rings; without drafts a state is cheaper to write than to replay. */
function memoryOptions({ cache = {}, speculation }: HybridEngineOptions): MemoryOptions {
  const maxTokens = speculation === undefined ? 0 : speculation.maxDrafts + 1;
  return { storage: cache.storage, ...(maxTokens > 0 && { replay: { rows: 2 * maxTokens, maxTokens } }) };
}

/** Settles when the work is done, or when somebody gives up on it. */
async function orAborted(work: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  let giveUp = () => {};
  const aborted = new Promise<void>((resolve) => {
    giveUp = resolve;
  });
  signal?.addEventListener('abort', giveUp);
  await Promise.race([work, aborted]);
  signal?.removeEventListener('abort', giveUp);
}
