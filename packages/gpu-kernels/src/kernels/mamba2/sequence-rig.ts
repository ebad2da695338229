import { readF32, storageBuffer } from '@bufferwise-internal/webgpu-node/testing';
import { ComputeContext } from '../../kernel/compute-context.ts';
import { causalConvReference } from '../recurrent/causal-conv.reference.ts';
import { recordCausalConv } from '../recurrent/causal-conv.ts';
import { packRequests } from '../recurrent/packed-requests.ts';
import { randomNumbers } from '../testing/guarded-memory-rig.ts';
import { ssmReference } from './mamba2.reference.ts';
import { recordMamba2Mixer } from './mamba2.ts';
import { type Mamba2Shape, mamba2Layout } from './mamba2-shape.ts';
import { packHeadParams, recordSsmScan } from './ssm.ts';

/** What a layer makes of one sequence: rows behind the convolution, outputs, and the pages that it leaves. */
export interface SequenceResult {
  xBC: Float32Array;
  y: Float32Array;
  tail: Float32Array;
  state: Float32Array;
}

/** One call of the layer: which sequences are packed in which order, and how many of their next tokens each brings. */
export type Call = readonly { sequence: number; tokens: number }[];

export interface SequenceOptions {
  /** Tokens of each sequence. */
  lengths: readonly number[];
  /**
   * What the pages hold at the beginning; default random. The last two: the sequences have no pages, their index is -1, or the
   * one behind the last page of the pool.
   */
  pages?: 'random' | 'zero' | 'none' | 'beyond';
  /** Changes the raw projection row of a token before anything runs. */
  edit?: (row: Float32Array, sequence: number, token: number) => void;
  seed?: number;
}

/**
 * Random sequences and weights of one layer, run by the kernels under any schedule and by the reference as a whole.
 * On the device everything has odd offsets and strides and pages lie in a scrambled order; all words that are nobody's hold
 * NaN: a kernel that reads one shows it, and one that writes there is found by `run`.
 */
export class SequenceRig {
  readonly #context: ComputeContext;
  readonly #shape: Mamba2Shape;
  readonly #layout: ReturnType<typeof mamba2Layout>;
  readonly #lengths: readonly number[];
  readonly #missingIndex: -1 | 'beyond' | undefined;
  readonly #projections: Float32Array[];
  readonly #tails: Float32Array[];
  readonly #states: Float32Array[];
  readonly #convWeight: Float32Array;
  readonly #convBias: Float32Array;
  readonly #head: { dtBias: Float32Array; aLog: Float32Array; dSkip: Float32Array };

  constructor(device: GPUDevice, shape: Mamba2Shape, { lengths, pages = 'random', edit, seed = 1 }: SequenceOptions) {
    const random = randomNumbers(seed);
    const make = (length: number, scale = 1, middle = 0) => Float32Array.from({ length }, () => middle + scale * random());
    const layout = mamba2Layout(shape);
    const page = (length: number) => (pages === 'random' ? make(length) : new Float32Array(length));
    this.#context = ComputeContext.of(device);
    this.#shape = shape;
    this.#layout = layout;
    this.#lengths = lengths;
    this.#missingIndex = pages === 'none' ? -1 : pages === 'beyond' ? 'beyond' : undefined;
    this.#projections = lengths.map((tokens, sequence) => {
      const rows = make(tokens * layout.projection.rowWords, 2);
      for (let t = 0; edit && t < tokens; t++) {
        edit(rows.subarray(t * layout.projection.rowWords, (t + 1) * layout.projection.rowWords), sequence, t);
      }
      return rows;
    });
    this.#tails = lengths.map(() => page(layout.tailWords));
    this.#states = lengths.map(() => page(layout.stateWords));
    this.#convWeight = make(layout.numChannels * shape.convWidth, 0.5);
    this.#convBias = make(layout.numChannels, 0.5);
    this.#head = { dtBias: make(shape.numHeads, 1, -3), aLog: make(shape.numHeads, 1, 1), dSkip: make(shape.numHeads, 0.5, 1) };
  }

  /** The whole of every sequence by the reference, in float64 but for what it reads and leaves. */
  reference(): SequenceResult[] {
    const { numChannels, innerSize, projection, tailWords, stateWords } = this.#layout;
    return this.#lengths.map((tokens, s) => {
      const result: SequenceResult = {
        xBC: new Float32Array(tokens * numChannels),
        y: new Float32Array(tokens * innerSize),
        tail: this.#tails[s].slice(),
        state: this.#states[s].slice(),
      };
      const pageIndex = [this.#missingIndex === undefined ? 0 : -1];
      const rows = (data: Float32Array, strideWords: number, offsetWords = 0) => ({ data, offsetWords, strideWords });
      const xBC = rows(result.xBC, numChannels);
      causalConvReference(
        { numChannels, width: this.#shape.convWidth },
        {
          tokensPerRequest: [tokens],
          input: rows(this.#projections[s], projection.rowWords, projection.xBC),
          weight: this.#convWeight,
          bias: this.#convBias,
          tail: { pool: result.tail, baseWords: 0, strideWords: tailWords, pageIndex },
          output: xBC,
        },
      );
      ssmReference(this.#shape, {
        tokensPerRequest: [tokens],
        xBC,
        dt: rows(this.#projections[s], projection.rowWords, projection.dt),
        ...this.#head,
        state: { pool: result.state, baseWords: 0, strideWords: stateWords, pageIndex },
        y: rows(result.y, innerSize),
      });
      return result;
    });
  }

  /**
   * Every sequence by the kernels, under a schedule that uses up its tokens.
   * @param options.always `scan`: also where `recordMamba2Mixer` would take a step
   * @throws when a word that belongs to no page and no row was written
   */
  async run(calls: readonly Call[], { always }: { always?: 'scan' } = {}): Promise<SequenceResult[]> {
    const { device } = this.#context;
    const { numChannels, innerSize, projection, tailWords, stateWords } = this.#layout;
    const tail = new ScrambledPool(device, this.#tails, tailWords, 3);
    const state = new ScrambledPool(device, this.#states, stateWords, 8);
    const convWeight = storageBuffer(device, this.#convWeight);
    const convBias = storageBuffer(device, this.#convBias);
    const headParams = storageBuffer(device, packHeadParams(this.#head));
    const results: SequenceResult[] = this.#lengths.map((tokens) => ({
      xBC: new Float32Array(tokens * numChannels),
      y: new Float32Array(tokens * innerSize),
      tail: new Float32Array(0),
      state: new Float32Array(0),
    }));
    const used = this.#lengths.map(() => 0);
    for (const call of calls) {
      const numTokens = call.reduce((sum, { tokens }) => sum + tokens, 0);
      const input = new NanRows(numTokens, projection.rowWords, 5);
      const xBCRows = new NanRows(numTokens, numChannels, 2);
      const yRows = new NanRows(numTokens, innerSize, 3);
      let row = 0;
      for (const { sequence, tokens } of call) {
        for (let t = 0; t < tokens; t++) {
          const at = (used[sequence] + t) * projection.rowWords;
          input.row(row++).set(this.#projections[sequence].subarray(at, at + projection.rowWords));
        }
      }
      const buffers = [input, xBCRows, yRows].map((rows) => storageBuffer(device, rows.words));
      const step = this.#context.step('sequences');
      const pagesOf = (pool: ScrambledPool) => pool.pages(step.upload(this.#indices(pool, call)));
      const operands = {
        requests: packRequests(
          step,
          call.map(({ tokens }) => tokens),
        ),
        projection: { buffer: buffers[0], offsetWords: input.offsetWords, strideWords: input.strideWords },
        convWeight: { buffer: convWeight },
        convBias: { buffer: convBias },
        headParams: { buffer: headParams },
        tail: pagesOf(tail),
        state: pagesOf(state),
        xBC: { buffer: buffers[1], offsetWords: xBCRows.offsetWords, strideWords: xBCRows.strideWords },
        y: { buffer: buffers[2], offsetWords: yRows.offsetWords, strideWords: yRows.strideWords },
      };
      if (always === 'scan') {
        const column = (word: number) => ({ ...operands.projection, offsetWords: operands.projection.offsetWords + word });
        const { convWeight: weight, convBias: bias, xBC: output } = operands;
        const convShape = { numChannels, width: this.#shape.convWidth };
        recordCausalConv(step, convShape, { ...operands, input: column(projection.xBC), weight, bias, output });
        recordSsmScan(step, this.#shape, { ...operands, dt: column(projection.dt) });
      } else {
        recordMamba2Mixer(step, this.#shape, operands);
      }
      step.submit();
      xBCRows.take(await readF32(device, buffers[1]));
      yRows.take(await readF32(device, buffers[2]));
      row = 0;
      for (const { sequence, tokens } of call) {
        for (let t = 0; t < tokens; t++, row++, used[sequence]++) {
          results[sequence].xBC.set(xBCRows.row(row), used[sequence] * numChannels);
          results[sequence].y.set(yRows.row(row), used[sequence] * innerSize);
        }
      }
      for (const buffer of buffers) buffer.destroy();
    }
    const tails = await tail.read(this.#missingIndex === undefined);
    const states = await state.read(this.#missingIndex === undefined);
    for (const buffer of [convWeight, convBias, headParams]) buffer.destroy();
    return results.map((result, s) => ({ ...result, tail: tails[s], state: states[s] }));
  }

  #indices(pool: ScrambledPool, call: Call): Int32Array {
    const missing = this.#missingIndex === 'beyond' ? pool.numPages : this.#missingIndex;
    return Int32Array.from(call, ({ sequence }) => missing ?? pool.pageOf(sequence));
  }
}

/** Rows at an odd offset, with gaps between them, everything NaN until it is set. */
class NanRows {
  readonly offsetWords = 7;
  readonly strideWords: number;
  readonly #rowWords: number;
  readonly #numRows: number;
  words: Float32Array;

  constructor(numRows: number, rowWords: number, gapWords: number) {
    this.#rowWords = rowWords;
    this.#numRows = numRows;
    this.strideWords = rowWords + gapWords;
    this.words = new Float32Array(this.offsetWords + numRows * this.strideWords).fill(Number.NaN);
  }

  row(index: number): Float32Array {
    const at = this.offsetWords + index * this.strideWords;
    return this.words.subarray(at, at + this.#rowWords);
  }

  /** Takes over what the device wrote, and finds what it should not have written. */
  take(words: Float32Array): void {
    this.words = words;
    const rest = words.slice();
    for (let row = 0; row < this.#numRows; row++) {
      rest.fill(
        Number.NaN,
        this.offsetWords + row * this.strideWords,
        this.offsetWords + row * this.strideWords + this.#rowWords,
      );
    }
    requireNan(rest, 'a row');
  }
}

/** A pool with twice as many pages as sequences, theirs at every other place from the end. */
class ScrambledPool {
  readonly #device: GPUDevice;
  readonly #buffer: GPUBuffer;
  readonly #baseWords = 11;
  readonly #strideWords: number;
  readonly #pageWords: number;
  readonly #numSequences: number;
  readonly #turn: number;

  constructor(device: GPUDevice, pages: readonly Float32Array[], pageWords: number, turn: number) {
    this.#device = device;
    this.#pageWords = pageWords;
    this.#strideWords = pageWords + 1;
    this.#numSequences = pages.length;
    this.#turn = turn;
    const words = new Float32Array(this.#baseWords + 2 * pages.length * this.#strideWords).fill(Number.NaN);
    for (let s = 0; s < pages.length; s++) words.set(pages[s], this.#baseWords + this.pageOf(s) * this.#strideWords);
    this.#buffer = storageBuffer(device, words);
  }

  get numPages(): number {
    return 2 * this.#numSequences;
  }

  pageOf(sequence: number): number {
    return 2 * ((this.#numSequences - 1 - sequence + this.#turn) % this.#numSequences) + 1;
  }

  pages(pageIndex: ReturnType<ReturnType<ComputeContext['step']>['upload']>) {
    return { pool: this.#buffer, baseWords: this.#baseWords, strideWords: this.#strideWords, pageIndex: { buffer: pageIndex } };
  }

  async read(written: boolean): Promise<Float32Array[]> {
    const words = await readF32(this.#device, this.#buffer);
    this.#buffer.destroy();
    const pages: Float32Array[] = [];
    for (let s = 0; s < this.#numSequences; s++) {
      const at = this.#baseWords + this.pageOf(s) * this.#strideWords;
      pages.push(words.slice(at, at + this.#pageWords));
      words.fill(Number.NaN, at, at + this.#pageWords);
    }
    requireNan(words, 'a page');
    if (!written && pages.some((page) => page.some((word) => word !== 0))) throw new Error('a page was written without an index');
    return pages;
  }
}

function requireNan(words: Float32Array, what: string): void {
  const at = words.findIndex((word) => !Number.isNaN(word));
  if (at >= 0) throw new Error(`word ${at}, outside ${what}, was written: ${words[at]}`);
}
