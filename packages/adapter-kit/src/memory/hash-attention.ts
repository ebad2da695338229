import type { AttentionLayerConfig } from '@bufferwise/core-policy';
import type { StorageLayout } from '@bufferwise/scratch-allocator';
import type { ConsumerStep, StepRequest } from '../consumer/consumer-adapter.ts';
import { type HashLayer, HashPages } from './hash-pages.ts';
import { mix, mixText } from './mix.ts';

/** What is read where there is no page. */
const NO_PAGE = 0xdeadbeef;

/** Attention that hashes: every token writes two words into each buffer, and answers with a hash of all words it sees, in order. */
export class HashAttention implements HashLayer {
  readonly #buffers: readonly { pages: HashPages; tokensPerPage: number; tokenWords: number; identity: number }[];
  readonly #windowSize: number;
  readonly #numSinkTokens: number;
  readonly #layerId: number;

  constructor(
    layout: StorageLayout,
    { layerId, buffers, slidingWindowSize, numSinkTokens = 0 }: AttentionLayerConfig,
    step: ConsumerStep,
  ) {
    const { tokensPerBlock } = layout;
    this.#layerId = layerId;
    this.#windowSize = slidingWindowSize ?? Number.POSITIVE_INFINITY;
    this.#numSinkTokens = slidingWindowSize === undefined ? 0 : Math.ceil(numSinkTokens / tokensPerBlock) * tokensPerBlock;
    this.#buffers = buffers
      .filter(({ size }) => size > 0)
      .map(({ role }) => {
        const pages = new HashPages(layout, layerId, role, step);
        const tokensPerPage = tokensPerBlock / layout.bufferAttr(layerId, role).expansion;
        return {
          pages,
          tokensPerPage,
          tokenWords: Math.floor(pages.pageWords / tokensPerPage),
          identity: mixText(`${layerId} ${role}`),
        };
      });
  }

  write({ start, matched, reusedGroups }: StepRequest, row: number, inputs: Uint32Array): void {
    for (const { pages, tokensPerPage, tokenWords, identity } of this.#buffers) {
      const firstWritten = reusedGroups.has(pages.groupId) ? matched : 0;
      inputs.forEach((input, i) => {
        const position = start + i;
        if (position < firstWritten) return;
        const page = pages.page(row, Math.floor(position / tokensPerPage));
        if (page === undefined) return;
        const at = (position % tokensPerPage) * tokenWords;
        page[at] = mix(input, identity);
        page[at + 1] = mix(identity, input);
      });
    }
  }

  read({ start }: StepRequest, row: number, inputs: Uint32Array, outputs: Uint32Array): void {
    inputs.forEach((input, i) => {
      const position = start + i;
      const windowBegin = Math.max(0, position + 1 - this.#windowSize);
      let seen = mix(input, this.#layerId);
      for (let token = 0; token < Math.min(this.#numSinkTokens, windowBegin); token++) seen = this.#see(seen, row, token);
      for (let token = windowBegin; token <= position; token++) seen = this.#see(seen, row, token);
      outputs[i] = mix(outputs[i], seen);
    });
  }

  #see(seen: number, row: number, token: number): number {
    let result = mix(seen, token);
    for (const { pages, tokensPerPage, tokenWords } of this.#buffers) {
      const page = pages.page(row, Math.floor(token / tokensPerPage));
      const at = (token % tokensPerPage) * tokenWords;
      result = page === undefined ? mix(result, NO_PAGE) : mix(mix(result, page[at]), page[at + 1]);
    }
    return result;
  }
}
