import type { HostPoolMemory } from '@bufferwise/cache-manager';
import type { LayerGroupId } from '@bufferwise/core-policy';
import type { StorageLayout } from '@bufferwise/scratch-allocator';
import type { ConsumerStep, StepRequest } from '../consumer/consumer-adapter.ts';

/** How a layer of the hash consumer takes part in a step. */
export interface HashLayer {
  /** Writes what the tokens leave behind. */
  write(request: StepRequest, row: number, inputs: Uint32Array): void;
  /** Mixes into `outputs` what each token reads. */
  read(request: StepRequest, row: number, inputs: Uint32Array, outputs: Uint32Array): void;
}

/** The pages of one buffer, of all requests of a step, as words. */
export class HashPages {
  readonly groupId: LayerGroupId;
  readonly #step: ConsumerStep;
  readonly #layerId: number;
  readonly #role: string;
  readonly #words: Uint32Array;
  readonly #strideWords: number;

  constructor(layout: StorageLayout, layerId: number, role: string, step: ConsumerStep) {
    this.groupId = layout.bufferAttr(layerId, role).lifecycleId;
    this.#step = step;
    this.#layerId = layerId;
    this.#role = role;
    const { bytes } = step.poolMemory(layerId, role) as HostPoolMemory;
    this.#words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength >> 2);
    this.#strideWords = layout.pageStride(layerId, role) >> 2;
  }

  /** Words that a page has. */
  get pageWords(): number {
    return this.#strideWords;
  }

  /** The words of a page of a request, by its place in the row; undefined where there is no page. */
  page(row: number, place: number): Uint32Array | undefined {
    const index = this.#step.pages.row(this.#layerId, this.#role, row)[place];
    if (index === undefined || index < 0) return undefined;
    return this.#words.subarray(index * this.#strideWords, (index + 1) * this.#strideWords);
  }
}
