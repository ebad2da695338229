import type { StepRequest } from '@bufferwise/adapter-kit';
import type { LayerGroupId } from '@bufferwise/core-policy';
import type { ComputeStep, StepData } from '@bufferwise/gpu-kernels';
import { tokensHeld } from '../replay.ts';

/** Requests as prefill kernels take them: the rows of a request are its last tokens. */
export interface PackedQueries {
  /** `[numRequests + 1] u32`: the first row of each request, and the number of rows. */
  readonly queryStart: StepData;
  /** `[numRequests] u32`: tokens of each request, those of the step included. */
  readonly contextLength: StepData;
  readonly numRequests: number;
}

/** What is written into a group where some of a step's tokens are there already. */
export interface WrittenQueries extends PackedQueries {
  /** Whose row of a table each of them has: -1 for tokens that are not written. */
  readonly requests: readonly number[];
}

/** The tokens of a step, and which of them are written into which group. Uploaded once, when first asked for. */
export class StepTokens {
  readonly numTokens: number;
  readonly maxContextLength: number;
  readonly oneTokenEach: boolean;
  readonly queries: PackedQueries;
  readonly #requests: readonly StepRequest[];
  readonly #compute: ComputeStep;
  readonly #places = new Map<string, StepData>();
  readonly #written = new Map<string, WrittenQueries>();

  constructor(requests: readonly StepRequest[], compute: ComputeStep) {
    this.#requests = requests;
    this.#compute = compute;
    this.numTokens = requests.reduce((sum, { numTokens }) => sum + numTokens, 0);
    this.maxContextLength = Math.max(...requests.map(({ start, numTokens }) => start + numTokens));
    this.oneTokenEach = requests.every(({ numTokens }) => numTokens === 1);
    this.queries = packQueries(compute, requests);
  }

  /** `[numTokens, 2] i32` of request and position, for a group: position -1 for a token whose pages were lent. */
  places(groupId: LayerGroupId): StepData {
    const held = this.#held(groupId);
    return known(this.#places, held.join(), () => {
      const places = new Int32Array(2 * this.numTokens);
      let row = 0;
      this.#requests.forEach(({ start, numTokens }, request) => {
        for (let i = 0; i < numTokens; i++, row++) places.set([request, i < held[request] ? -1 : start + i], 2 * row);
      });
      return this.#compute.upload(places);
    });
  }

  /** The same by request, for kernels that write whole chunks: tokens that are not written are a request without pages. */
  written(groupId: LayerGroupId): WrittenQueries {
    const held = this.#held(groupId);
    return known(this.#written, held.join(), () => {
      const requests: number[] = [];
      const parts: Pick<StepRequest, 'start' | 'numTokens'>[] = [];
      this.#requests.forEach(({ start, numTokens }, request) => {
        const before = held[request];
        if (before > 0) {
          requests.push(-1);
          parts.push({ start, numTokens: before });
        }
        requests.push(request);
        parts.push({ start: start + before, numTokens: numTokens - before });
      });
      return { ...(parts.length === this.#requests.length ? this.queries : packQueries(this.#compute, parts)), requests };
    });
  }

  #held(groupId: LayerGroupId): number[] {
    return this.#requests.map((request) => tokensHeld(request, groupId));
  }
}

function packQueries(compute: ComputeStep, requests: readonly Pick<StepRequest, 'start' | 'numTokens'>[]): PackedQueries {
  const queryStart = new Uint32Array(requests.length + 1);
  const contextLength = new Uint32Array(requests.length);
  requests.forEach(({ start, numTokens }, i) => {
    queryStart[i + 1] = queryStart[i] + numTokens;
    contextLength[i] = start + numTokens;
  });
  return {
    queryStart: compute.upload(queryStart),
    contextLength: compute.upload(contextLength),
    numRequests: requests.length,
  };
}

function known<T>(map: Map<string, T>, key: string, make: () => T): T {
  const found = map.get(key) ?? make();
  map.set(key, found);
  return found;
}
