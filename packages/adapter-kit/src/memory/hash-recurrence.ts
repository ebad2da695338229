import type { SsmLayerConfig } from '@bufferwise/core-policy';
import type { StorageLayout } from '@bufferwise/scratch-allocator';
import type { ConsumerStep, StepRequest } from '../consumer/consumer-adapter.ts';
import { type HashLayer, HashPages } from './hash-pages.ts';
import { mix, mixText } from './mix.ts';

/** Inputs that the convolution looks back at. */
const TAIL = 3;
/** Words of a ring entry: position + 1, the state before the token, the tail before it. */
const RING_WORDS = 6;
const NO_PAGE = Uint32Array.of(0xdeadbeef, 0xdeadbeef, 0xdeadbeef, 0xdeadbeef);

/**
 * A recurrence that hashes. State page: two words of state, and tokens in it. Convolution page: the last three inputs, oldest first, and
 * tokens in it. Ring: what both were before each of the last tokens, so that a step may begin before tokens that were written.
 */
export class HashRecurrence implements HashLayer {
  readonly #identity: number;
  readonly #state: HashPages;
  readonly #tail: HashPages | undefined;
  readonly #ring: HashPages | undefined;
  /** Answers of the running step, row by row: state moves on as it is read. */
  readonly #answers: Uint32Array[] = [];

  constructor(layout: StorageLayout, { layerId, buffers }: SsmLayerConfig, step: ConsumerStep) {
    const pagesOf = (name: string) =>
      buffers.some(({ role, size }) => role === name && size > 0) ? new HashPages(layout, layerId, name, step) : undefined;
    this.#identity = mixText(`${layerId} recurrence`);
    this.#state = pagesOf('ssm_state') as HashPages;
    this.#tail = pagesOf('conv_state');
    this.#ring = pagesOf('replay_ring');
  }

  /** The first token that a buffer needs again when it holds nothing of what was matched. A ring needs none: it is for what comes. */
  static neededFrom(role: string, matched: number): number {
    if (role === 'replay_ring') return matched;
    return role === 'conv_state' ? Math.max(0, matched - TAIL) : 0;
  }

  write(request: StepRequest, row: number, inputs: Uint32Array): void {
    const { start, matched } = request;
    const state = this.#state.page(row, 0) ?? NO_PAGE.slice();
    const tail = this.#tail === undefined ? undefined : (this.#tail.page(row, 0) ?? NO_PAGE.slice());
    const ring = this.#ring?.page(row, 0);
    const stateBegin = Math.max(start, this.#holds(this.#state, request) ? matched : 0);
    const tailBegin = Math.max(start, this.#tail !== undefined && this.#holds(this.#tail, request) ? matched : 0);
    this.#rewind(ring, stateBegin, state, 2, 1);
    if (tail !== undefined) this.#rewind(ring, tailBegin, tail, TAIL, 3);

    const answers = new Uint32Array(inputs.length);
    inputs.forEach((input, i) => {
      const position = start + i;
      if (position >= stateBegin && position >= tailBegin) this.#remember(ring, position, state, tail);
      if (tail !== undefined && position >= tailBegin) {
        answers[i] = mix(mix(tail[0], tail[1]), tail[2]);
        tail.set([tail[1], tail[2], input, position + 1]);
      }
      if (position < stateBegin) return;
      const moved = mix(mix(state[0], input), this.#identity);
      state.set([moved, mix(state[1], moved), position + 1]);
      answers[i] = mix(answers[i], mix(state[0], state[1]));
    });
    this.#answers[row] = answers;
  }

  read(_request: StepRequest, row: number, _inputs: Uint32Array, outputs: Uint32Array): void {
    this.#answers[row].forEach((answer, i) => {
      outputs[i] = mix(outputs[i], answer);
    });
  }

  #holds(pages: HashPages, { reusedGroups }: StepRequest): boolean {
    return reusedGroups.has(pages.groupId);
  }

  /** Puts words back as they were before the token at `position`, if later tokens were written. */
  #rewind(ring: Uint32Array | undefined, position: number, words: Uint32Array, count: number, at: number): void {
    if (words[count] <= position || ring === undefined) return;
    const entry = this.#entry(ring, position);
    if (entry[0] !== position + 1) return;
    words.set(entry.subarray(at, at + count));
    words[count] = position;
  }

  #remember(ring: Uint32Array | undefined, position: number, state: Uint32Array, tail: Uint32Array | undefined): void {
    if (ring === undefined) return;
    this.#entry(ring, position).set([position + 1, state[0], state[1], ...(tail?.subarray(0, TAIL) ?? [0, 0, 0])]);
  }

  #entry(ring: Uint32Array, position: number): Uint32Array {
    const at = (position % Math.floor(ring.length / RING_WORDS)) * RING_WORDS;
    return ring.subarray(at, at + RING_WORDS);
  }
}
