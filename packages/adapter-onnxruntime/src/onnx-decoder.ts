import { CallGate } from '@bufferwise/adapter-kit';
import { type CreateKvCacheOptions, HostPageDevice, type KvCache, KvCacheManager } from '@bufferwise/cache-manager';
import { defineCacheConfig } from '@bufferwise/core-policy';
import type { InferenceSession, Tensor } from 'onnxruntime-common';
import { OnnxDecoderError } from './errors.ts';
import type { GenerateOptions } from './generate.ts';
import { cacheLayers } from './model/cache-layers.ts';
import { checkedTokens } from './model/check-tokens.ts';
import { type DecoderModel, readDecoderModel } from './model/decoder-model.ts';
import { OnnxSequence, type SequenceHost } from './onnx-sequence.ts';
import { checkManager } from './pages/check-manager.ts';
import { KvPages } from './pages/kv-pages.ts';
import { openKvCache } from './pages/open-kv-cache.ts';
import type { Past } from './run/decoder-run.ts';
import { RunQueue } from './run/run-queue.ts';
import { type OrtModule, pastTensor } from './run/tensors.ts';

const DEFAULT_TOKENS_PER_BLOCK = 32;
const DEFAULT_DEVICE_BYTES = 256 * 2 ** 20;

export interface OnnxDecoderOptions {
  /** A decoder with `past_key_values` inputs. It stays the caller's, to be released after `close`; nobody else may run it meanwhile. */
  readonly session: InferenceSession;
  /** The module that made it: only its `Tensor` is used. */
  readonly ort: OrtModule;
  /** Default 32. */
  readonly tokensPerBlock?: number;
  /** Bytes of memory of this process that pages may use. Default 256 MiB. */
  readonly deviceBytes?: number;
  /** One with the layers of `onnxCacheLayers`, instead of the two above: with more tiers, say. It stays the caller's, to be closed after the decoder. */
  readonly manager?: KvCacheManager;
  /** Most tokens of one run: logits of a long prompt take much memory. Default: no bound. */
  readonly maxTokensPerRun?: number;
  /**
   * Whether the model does right with several tokens behind a past. Default: not with `use_cache_branch`, as the branches with a past of such
   * models were often traced with one token, and have no causal mask. Where false, a rest is run token by token.
   */
  readonly multiTokenPast?: boolean;
}

export interface OpenOptions extends Pick<CreateKvCacheOptions, 'scope' | 'priority' | 'retention'> {
  /** The prompt: the longest prefix of it that is in pages need not be run. Default: none. */
  readonly tokens?: ArrayLike<number>;
}

/**
 * A decoder in ONNX Runtime whose sequences begin from what earlier ones left in pages.
 *
 * Runs are one at a time, in the order of the calls, whatever the sequences: so any number of them may be open and called at once.
 */
export class OnnxDecoder {
  /** The manager of its pages, for statistics and pins. */
  readonly manager: KvCacheManager;
  readonly #ownsManager: boolean;
  readonly #host: SequenceHost;
  readonly #open = new Set<OnnxSequence>();
  readonly #gate = new CallGate('the ONNX decoder');

  /**
   * @throws {OnnxDecoderError} `onnx-model` on a model that cannot be served, `onnx-options`. {AmbiguousLayerError} on a manager with a split layer,
   *   {AdapterError} `layout-refused` on any other that does not fit. {ConfigError} on sizes that make no cache
   */
  static async create(options: OnnxDecoderOptions): Promise<OnnxDecoder> {
    checkOptions(options);
    const model = readDecoderModel(options.session);
    const manager = options.manager ?? newManager(model, options);
    checkManager(manager, cacheLayers(model, manager.layout.tokensPerBlock));
    await manager.ready();
    return new OnnxDecoder(manager, model, options);
  }

  private constructor(manager: KvCacheManager, model: DecoderModel, options: OnnxDecoderOptions) {
    const { session, ort, maxTokensPerRun = Number.POSITIVE_INFINITY, multiTokenPast = !model.takesCacheBranch } = options;
    this.manager = manager;
    this.#ownsManager = options.manager === undefined;
    this.#host = {
      runtime: { session, ort, model },
      pages: new KvPages(manager, model),
      queue: new RunQueue(),
      tokensPerBlock: manager.layout.tokensPerBlock,
      maxFirstRun: maxTokensPerRun,
      maxLaterRun: multiTokenPast ? maxTokensPerRun : 1,
      ended: (sequence) => this.#open.delete(sequence),
    };
  }

  /**
   * Opens a sequence on the longest prefix of its prompt that pages hold, and that is not all of it: at least one token is left to be run.
   * Close it to give its memory back.
   *
   * @throws {OnnxDecoderError} `onnx-tokens` on anything that is no token of the model, {StateError} on a bad scope, {AdapterError} `plugin-closed`
   */
  async open(options: OpenOptions = {}): Promise<OnnxSequence> {
    return this.#gate.run(undefined, async () => {
      const { tokens = [], ...request } = options;
      const prompt = checkedTokens('open', tokens, this.#host.runtime.model.vocabSize);
      const kvCache = await openKvCache(this.manager, prompt, request);
      try {
        const sequence = new OnnxSequence(this.#host, { kvCache, past: this.#past(kvCache), prompt });
        this.#open.add(sequence);
        return sequence;
      } catch (error) {
        kvCache.close();
        throw error;
      }
    });
  }

  /** Answers a prompt: opens a sequence, generates, and closes it, also when the loop is left early. Throws as `open` and `OnnxSequence.generate`. */
  async *generate(options: OpenOptions & GenerateOptions): AsyncGenerator<number, void> {
    options.signal?.throwIfAborted();
    const sequence = await this.open(options);
    try {
      yield* sequence.generate(sequence.rest, options);
    } finally {
      await sequence.close();
    }
  }

  /** Closes all sequences, and the manager if the decoder made it. */
  close(): Promise<void> {
    return this.#gate.close(async () => {
      await Promise.allSettled([...this.#open].map((sequence) => sequence.close()));
      if (this.#ownsManager) await this.manager.close();
    });
  }

  /** Keys and values of what a request matched, as tensors. */
  #past(kvCache: KvCache): Past {
    const { ort, model } = this.#host.runtime;
    const length = kvCache.numCommittedTokens;
    const rows = this.#host.pages.read(kvCache, length);
    const tensors = model.kvTensors.map((tensor): [string, Tensor] => [
      tensor.past,
      pastTensor(ort, tensor, rows.get(tensor.past) as Uint8Array, length),
    ]);
    return { tensors: new Map(tensors), length };
  }
}

function newManager(model: DecoderModel, options: OnnxDecoderOptions): KvCacheManager {
  const { tokensPerBlock = DEFAULT_TOKENS_PER_BLOCK, deviceBytes = DEFAULT_DEVICE_BYTES } = options;
  const config = defineCacheConfig({
    tokensPerBlock,
    layers: cacheLayers(model, tokensPerBlock),
    tiers: [{ tier: 'device', quota: deviceBytes }],
  });
  return new KvCacheManager({ config, device: new HostPageDevice() });
}

function checkOptions({ manager, tokensPerBlock, deviceBytes, maxTokensPerRun }: OnnxDecoderOptions): void {
  for (const [name, value] of Object.entries({ tokensPerBlock, deviceBytes, maxTokensPerRun })) {
    if (value !== undefined && (!Number.isSafeInteger(value) || value < 1))
      throw new OnnxDecoderError('onnx-options', `${name} is ${value}; give a whole number from 1 on`);
  }
  if (manager !== undefined && (tokensPerBlock !== undefined || deviceBytes !== undefined))
    throw new OnnxDecoderError(
      'onnx-options',
      'tokensPerBlock and deviceBytes are those of the manager that was given; leave them out',
    );
}
