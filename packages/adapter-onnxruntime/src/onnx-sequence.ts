import { AdapterError } from '@bufferwise/adapter-kit';
import type { KvCache } from '@bufferwise/cache-manager';
import { OnnxDecoderError } from './errors.ts';
import { type GenerateOptions, generateTokens } from './generate.ts';
import { checkedTokens } from './model/check-tokens.ts';
import type { KvPages } from './pages/kv-pages.ts';
import { type DecoderRuntime, type Past, runDecoder } from './run/decoder-run.ts';
import type { RunQueue } from './run/run-queue.ts';
import { tensorBytes } from './run/tensors.ts';

/** What the sequences of a decoder have in common. */
export interface SequenceHost {
  readonly runtime: DecoderRuntime;
  readonly pages: KvPages;
  readonly queue: RunQueue;
  readonly tokensPerBlock: number;
  /** Most tokens of a run without and with a past. */
  readonly maxFirstRun: number;
  readonly maxLaterRun: number;
  /** Told once the sequence holds nothing any more. */
  ended(sequence: OnnxSequence): void;
}

/** What a sequence begins with: its own from then on. */
export interface SequenceStart {
  readonly kvCache: KvCache;
  /** Keys and values of what was matched. */
  readonly past: Past;
  readonly prompt: Uint32Array;
}

/**
 * One sequence of tokens. Keys and values of all of them lie in tensors of the runtime, each run's `present` being the next run's `past`;
 * pages hold a copy, from which other sequences begin. Full blocks are there for others once they were run, the rest after `close`.
 *
 * Where pages have no room, a sequence goes on all the same, and keeps what is left over to itself.
 */
export class OnnxSequence {
  /** Tokens of the prompt that were not run, as pages had their keys and values. */
  readonly matched: number;
  /** Tokens of the prompt behind them: what to `forward` first. At least one, unless the prompt is empty. */
  readonly rest: Uint32Array;
  readonly #host: SequenceHost;
  readonly #kvCache: KvCache;
  /** Tokens that were run and are not in pages. */
  #unpublished: number[] = [];
  #past: Past;
  #closed: Promise<void> | undefined;
  #failed = false;

  /** @internal Sequences are opened by their decoder. */
  constructor(host: SequenceHost, { kvCache, past, prompt }: SequenceStart) {
    this.#host = host;
    this.#kvCache = kvCache;
    this.#past = past;
    this.matched = past.length;
    this.rest = prompt.slice(past.length);
  }

  /** Tokens matched and run. */
  get length(): number {
    return this.#past.length;
  }

  /**
   * Runs the next tokens, behind those of other calls under way. An abort is heard until the first run begins, and between two runs: then
   * `length` says how far it got.
   *
   * @param tokens at least one
   * @returns the logits of the last one, `[vocabulary]`: the caller's
   * @throws {OnnxDecoderError} `onnx-tokens` on tokens that are none; `onnx-run`, `onnx-output` when a run failed: the sequence has ended
   *   then, and what it published is there for the next one. {AdapterError} `plugin-closed`; the signal's reason
   */
  async forward(tokens: ArrayLike<number>, options: { signal?: AbortSignal } = {}): Promise<Float32Array> {
    this.#checkOpen();
    if (tokens.length === 0) throw new OnnxDecoderError('onnx-tokens', 'forward: no tokens; give at least one');
    const checked = checkedTokens('forward', tokens, this.#host.runtime.model.vocabSize);
    options.signal?.throwIfAborted();
    return this.#host.queue.run(() => this.#forward(checked, options.signal), options.signal);
  }

  /** Runs tokens, then chooses and runs one after the other. Leaves the sequence open. Throws as `forward`, and {OnnxDecoderError} `onnx-options`. */
  generate(tokens: ArrayLike<number>, options: GenerateOptions): AsyncGenerator<number, void> {
    return generateTokens(this, tokens, options);
  }

  /**
   * Publishes the rest, as far as there is room, and gives everything back, once the calls before it have ended. The second time it waits for
   * the first.
   *
   * @throws {OnnxDecoderError} `onnx-run` when the rest could not be read from where it is; everything was given back all the same
   */
  close(): Promise<void> {
    this.#closed ??= this.#host.queue.run(async () => {
      if (this.#failed) return;
      try {
        await this.#publish(this.length);
      } finally {
        this.#end();
      }
    });
    return this.#closed;
  }

  async #forward(tokens: Uint32Array, signal: AbortSignal | undefined): Promise<Float32Array> {
    if (this.#failed) throw this.#closedError();
    let logits: Float32Array = new Float32Array(0);
    for (let at = 0; at < tokens.length; ) {
      if (at > 0) signal?.throwIfAborted();
      const most = this.length === 0 ? this.#host.maxFirstRun : this.#host.maxLaterRun;
      const step = tokens.subarray(at, at + most);
      logits = await this.#run(step);
      at += step.length;
    }
    return logits;
  }

  async #run(tokens: Uint32Array): Promise<Float32Array> {
    try {
      const { logits, past } = await runDecoder(this.#host.runtime, this.#past, tokens);
      dispose(this.#past);
      this.#past = past;
      for (const token of tokens) this.#unpublished.push(token);
      await this.#publish(this.length - (this.length % this.#host.tokensPerBlock));
      return logits;
    } catch (error) {
      this.#failed = true;
      this.#end();
      throw error;
    }
  }

  /** Brings the tokens up to `end` into pages, block by block, until there is no room. What finds none is tried again the next time. */
  async #publish(end: number): Promise<void> {
    const kvCache = this.#kvCache;
    if (kvCache.numCommittedTokens >= end || kvCache.status === 'closed') return;
    if (kvCache.status === 'suspended' && !(await kvCache.resume())) return;
    const { tensors, length } = this.#past;
    const rows = new Map<string, Uint8Array>();
    for (const [name, tensor] of tensors) rows.set(name, await tensorBytes(tensor));
    // Nothing waits from here on: pages stay where they are.
    while (kvCache.status === 'active' && kvCache.numCommittedTokens < end) {
      const begin = kvCache.numCommittedTokens;
      const blockEnd = Math.min(end, begin - (begin % this.#host.tokensPerBlock) + this.#host.tokensPerBlock);
      if (!kvCache.resize(blockEnd)) return;
      this.#host.pages.write(kvCache, begin, blockEnd, rows, length);
      kvCache.commit(this.#unpublished.splice(0, blockEnd - begin));
    }
  }

  #end(): void {
    dispose(this.#past);
    this.#kvCache.close();
    this.#host.ended(this);
  }

  #checkOpen(): void {
    if (this.#closed !== undefined || this.#failed) throw this.#closedError();
  }

  #closedError(): AdapterError {
    const how = this.#failed ? 'ended when a run failed' : 'was closed';
    return new AdapterError('plugin-closed', `this sequence ${how}; open another one, which continues from what was published`);
  }
}

function dispose({ tensors }: Past): void {
  for (const tensor of tensors.values()) tensor.dispose();
}
