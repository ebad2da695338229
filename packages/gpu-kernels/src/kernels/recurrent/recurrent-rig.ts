import { storageBuffer } from '@bufferwise-internal/webgpu-node/testing';
import { ComputeContext } from '../../kernel/compute-context.ts';
import type { StorageDtype } from '../../kernel/storage-dtype.ts';
import { GuardedMemory } from '../testing/guarded-memory-rig.ts';
import { halfBits, halfNumber } from '../testing/half-floats.ts';
import type { FamilyUnderTest } from './family-rig.ts';
import { packRequests } from './packed-requests.ts';
import { packReplay, type ReplayCursor, type ReplayRing, ringWords } from './replay-ring.ts';
import { packSnapshots, type Snapshot } from './snapshots.ts';
import { stateNumbers } from './state-shape.ts';
import type { RecurrentOptions } from './variant.ts';

/** What one request brings to a call: rows behind the convolution, and gates. */
export interface TokenInputs {
  tokens: Float32Array;
  gates: Float32Array;
  numTokens: number;
}

/** Which pages the requests of a call have. */
export interface CallPages {
  source: readonly number[];
  /** Default: `source`. */
  target?: readonly number[];
  snapshots?: readonly Snapshot[];
}

export interface RigOptions extends RecurrentOptions {
  numPages: number;
  dtype?: StorageDtype;
  ring?: ReplayRing;
}

/**
 * A layer of a family with a pool of states and one of rings, everything in memory where what is nobody's is NaN.
 * Beside it the same by the reference, as plain states in float64.
 */
export class RecurrentRig {
  readonly #family: FamilyUnderTest;
  readonly #device: GPUDevice;
  readonly #options: RigOptions;
  readonly #states: GuardedMemory;
  readonly #rings: GuardedMemory | undefined;
  readonly #headParams: GPUBuffer;

  constructor(device: GPUDevice, family: FamilyUnderTest, options: RigOptions) {
    this.#device = device;
    this.#family = family;
    this.#options = options;
    this.#states = new GuardedMemory(device, options.numPages, stateNumbers(family.shape) / this.#perWord);
    const { ring } = options;
    if (ring) this.#rings = new GuardedMemory(device, options.numPages, ringWords('test', family.shape, ring));
    this.#headParams = storageBuffer(device, family.headParams);
  }

  get #perWord(): number {
    return this.#options.dtype === 'f16' ? 2 : 1;
  }

  /** Random inputs of so many tokens. */
  inputs(numTokens: number, random: () => number): TokenInputs {
    const make = (length: number) => Float32Array.from({ length }, () => 1.5 * random());
    return { numTokens, tokens: make(numTokens * this.#family.tokenWords), gates: make(numTokens * this.#family.gateWords) };
  }

  /** Puts a state into a page, and returns the numbers that are then stored there. */
  setState(page: number, numbers: Float32Array<ArrayBuffer>): Float32Array<ArrayBuffer> {
    if (this.#options.dtype !== 'f16') {
      this.#states.set(page, numbers);
      return numbers;
    }
    const halves = Uint16Array.from(numbers, halfBits);
    this.#states.set(page, halves);
    return Float32Array.from(halves, halfNumber);
  }

  /** Declares pages that calls write. */
  ownStates(...pages: number[]): void {
    this.#states.own(...pages);
  }

  ownRings(...pages: number[]): void {
    this.#rings?.own(...pages);
  }

  /** One call of a scan or a step; outputs of all its tokens. */
  async call(how: 'scan' | 'step', inputs: readonly TokenInputs[], pages: CallPages): Promise<Float32Array> {
    const counts = inputs.map(({ numTokens }) => numTokens);
    return this.#run(inputs, (step, operands) => {
      const state = this.#statePages(step, counts, pages);
      this.#family[how](step, { ...operands, requests: packRequests(step, counts), state }, this.#options);
    });
  }

  /** One call of a replay. */
  async replay(
    inputs: readonly TokenInputs[],
    pages: CallPages & { ring: readonly number[] },
    cursors: readonly ReplayCursor[],
    settle?: (request: number) => boolean,
  ): Promise<Float32Array> {
    const counts = inputs.map(({ numTokens }) => numTokens);
    const { ring } = this.#options;
    if (!ring || !this.#rings) throw new Error('the rig has no rings');
    const rings = this.#rings;
    return this.#run(inputs, (step, operands) => {
      const state = this.#statePages(step, counts, pages);
      const ringPages = { ...rings.pages, pageIndex: { buffer: step.upload(Int32Array.from(pages.ring)) } };
      const replay = packReplay(step, ring, counts, cursors, settle);
      this.#family.replay(step, { ...operands, replay, state, ring: ringPages }, this.#options);
    });
  }

  /** All states that are owned, and a look at what nobody owns. */
  async states(): Promise<Map<number, Float32Array>> {
    await this.#rings?.read();
    const words = await this.#states.read();
    const numbers = (page: Uint32Array) =>
      this.#options.dtype === 'f16' ? Float32Array.from(new Uint16Array(page.buffer), halfNumber) : new Float32Array(page.buffer);
    return new Map([...words].map(([page, content]) => [page, numbers(content)]));
  }

  destroy(): void {
    this.#states.destroy();
    this.#rings?.destroy();
    this.#headParams.destroy();
  }

  #statePages(step: Step, counts: readonly number[], { source, target, snapshots }: CallPages) {
    const table = (indices: readonly number[]) => ({ buffer: step.upload(Int32Array.from(indices)) });
    return {
      ...this.#states.pages,
      dtype: this.#options.dtype,
      pageIndex: table(source),
      targetIndex: target && table(target),
      snapshots: snapshots && packSnapshots(step, counts, snapshots),
    };
  }

  async #run(inputs: readonly TokenInputs[], record: (step: Step, operands: RunOperands) => void): Promise<Float32Array> {
    const { tokenWords, gateWords, shape } = this.#family;
    const numTokens = inputs.reduce((sum, input) => sum + input.numTokens, 0);
    const yWords = shape.numHeads * shape.headDim;
    const tokens = new GuardedMemory(this.#device, numTokens, tokenWords, 2);
    const gates = new GuardedMemory(this.#device, numTokens, gateWords, 1);
    const y = new GuardedMemory(this.#device, numTokens, yWords, 3);
    let row = 0;
    for (const input of inputs) {
      for (let t = 0; t < input.numTokens; t++, row++) {
        tokens.set(row, input.tokens.slice(t * tokenWords, (t + 1) * tokenWords));
        gates.set(row, input.gates.slice(t * gateWords, (t + 1) * gateWords));
        y.own(row);
      }
    }
    const step = ComputeContext.of(this.#device).step('recurrent rig');
    record(step, { tokens: tokens.rows, gates: gates.rows, headParams: { buffer: this.#headParams }, y: y.rows });
    step.submit();
    const outputs = new Float32Array(numTokens * yWords);
    for (const [at, words] of await y.read()) outputs.set(new Float32Array(words.buffer), at * yWords);
    for (const memory of [tokens, gates, y]) memory.destroy();
    return outputs;
  }
}

type Step = ReturnType<ComputeContext['step']>;
type Rows = GuardedMemory['rows'];
interface RunOperands {
  tokens: Rows;
  gates: Rows;
  headParams: { buffer: GPUBuffer };
  y: Rows;
}

/** A request's state by the reference, which its tokens advance in place; outputs of the tokens. */
export function referenceCall(family: FamilyUnderTest, input: TokenInputs, state: Float64Array): Float64Array {
  const y = new Float64Array(input.numTokens * family.shape.numHeads * family.shape.headDim);
  const pages = { pool: state, baseWords: 0, strideWords: state.length, pageIndex: [0] };
  family.reference([input.numTokens], Float64Array.from(input.tokens), Float64Array.from(input.gates), pages, y);
  return y;
}

/** The tokens of an input from `begin` to `end`. */
export function tokensOf(family: FamilyUnderTest, input: TokenInputs, begin: number, end: number): TokenInputs {
  const { tokenWords, gateWords } = family;
  return {
    numTokens: end - begin,
    tokens: input.tokens.slice(begin * tokenWords, end * tokenWords),
    gates: input.gates.slice(begin * gateWords, end * gateWords),
  };
}

/** Tokens of several inputs behind one another. */
export function joined(inputs: readonly TokenInputs[]): TokenInputs {
  const join = (parts: Float32Array[]) => Float32Array.from(parts.flatMap((part) => [...part]));
  return {
    numTokens: inputs.reduce((sum, { numTokens }) => sum + numTokens, 0),
    tokens: join(inputs.map(({ tokens }) => tokens)),
    gates: join(inputs.map(({ gates }) => gates)),
  };
}
