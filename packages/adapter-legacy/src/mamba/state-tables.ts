import type { ConsumerStep } from '@bufferwise/adapter-kit';
import type { BufferId, LayerGroupId } from '@bufferwise/core-policy';
import {
  type ComputeStep,
  type PackedRequests,
  type PagePool,
  packRequests,
  type StepData,
  type WebGpuPoolMemory,
  type Words,
} from '@bufferwise/gpu-kernels';
import { BAD_PAGE_INDEX, type StorageLayout } from '@bufferwise/scratch-allocator';
import { baseIndices, placesBySlot } from '../base-indices.ts';
import { tokensHeld } from '../replay.ts';

/** What the layers of one group share in a step. */
export interface GroupStep {
  readonly requests: PackedRequests;
  /** `[requests.numRequests] i32`: the slot of each request, for all buffers of all layers. */
  readonly slots: StepData;
  /** `[requests.numRequests] u32`: position of the first token that each has in the step. */
  readonly positions: Words;
}

/**
 * The tables of one step: one index a request and layer group.
 *
 * Tokens that a group has already do not move its state: they are packed as a request of their own, without a page. It begins from
 * zeros and leaves nothing; what comes out for those tokens means nothing.
 */
export class StateTables {
  readonly #layout: StorageLayout;
  readonly #step: ConsumerStep;
  readonly #compute: ComputeStep;
  readonly #sources: ReadonlyMap<LayerGroupId, BufferId>;
  readonly #groups = new Map<LayerGroupId, GroupStep>();
  readonly #slots = new Map<LayerGroupId, StepData>();

  /** @param sources for each group a buffer of it whose rows the step has */
  constructor(layout: StorageLayout, step: ConsumerStep, compute: ComputeStep, sources: ReadonlyMap<LayerGroupId, BufferId>) {
    this.#layout = layout;
    this.#step = step;
    this.#compute = compute;
    this.#sources = sources;
  }

  /** The requests of a step as a group takes them. */
  group(groupId: LayerGroupId): GroupStep {
    let group = this.#groups.get(groupId);
    if (group === undefined) {
      group = this.#pack(groupId);
      this.#groups.set(groupId, group);
    }
    return group;
  }

  /** `[numRequests] i32`: the slot of each request of the step, as they are. */
  slots(groupId: LayerGroupId): StepData {
    let slots = this.#slots.get(groupId);
    if (slots === undefined) {
      slots = this.#compute.upload(this.#bases(groupId));
      this.#slots.set(groupId, slots);
    }
    return slots;
  }

  /** The pool of a buffer, counted in slots. */
  pool(layerId: number, role: string): PagePool {
    const { buffer } = this.#step.poolMemory(layerId, role) as WebGpuPoolMemory;
    return { pool: buffer, ...placesBySlot(this.#layout, layerId, role) };
  }

  #pack(groupId: LayerGroupId): GroupStep {
    const bases = this.#bases(groupId);
    const counts: number[] = [];
    const slots: number[] = [];
    const positions: number[] = [];
    const add = (numTokens: number, slot: number, position: number) => {
      counts.push(numTokens);
      slots.push(slot);
      positions.push(position);
    };
    this.#step.requests.forEach((request, i) => {
      const held = tokensHeld(request, groupId);
      if (held > 0) add(held, BAD_PAGE_INDEX, 0);
      add(request.numTokens - held, bases[i], request.start + held);
    });
    return {
      requests: packRequests(this.#compute, counts),
      slots: this.#compute.upload(Int32Array.from(slots)),
      positions: { buffer: this.#compute.upload(Uint32Array.from(positions)) },
    };
  }

  #bases(groupId: LayerGroupId): Int32Array {
    return baseIndices(this.#step.pages, this.#sources.get(groupId) as BufferId);
  }
}
