import type { StepRequest } from '@bufferwise/adapter-kit';
import type { LayerGroupId } from '@bufferwise/core-policy';
import type { ComputeStep, StepData } from '@bufferwise/gpu-kernels';

/** Which tokens a step has, as all layers read it. */
export interface StepTokens {
  readonly numTokens: number;
  readonly numRequests: number;
  /** `[numRequests + 1] u32`: first row of each request, and `numTokens`. */
  readonly queryStart: StepData;
  /** `[numRequests] u32`: tokens of each request, those of the step included. */
  readonly contextLength: StepData;
  readonly maxContextLength: number;
  /** `[numTokens, 2] i32`: request and position of each row. */
  readonly places: StepData;
}

/** Which tokens of a step are written into a group that some of its requests reuse. */
export interface MaskedWrites {
  /** `[numTokens, 2] i32` as `StepTokens.places`; request -1 for tokens that the group holds already. */
  readonly places: StepData;
  /** The same for kernels that take whole runs of rows: each request is cut in two where its match ends. */
  readonly runs: WriteRuns;
}

/** Rows of a step in runs, each of one request or of nobody. */
export interface WriteRuns {
  readonly numRuns: number;
  /** `[numRuns + 1] u32`, `[numRuns] u32`, as in `StepTokens`. */
  readonly queryStart: StepData;
  readonly contextLength: StepData;
  /** The request whose pages a run goes to; -1: it is written nowhere. */
  readonly requestOf: readonly number[];
}

/** Makes the tables of tokens. Its arrays are used again in every step: an upload has copied them when it returns. */
export class TokenTables {
  #places = new Int32Array(64);
  #queryStart = new Uint32Array(64);
  #contextLength = new Uint32Array(64);

  /** Uploads what all layers of a step share. */
  upload(compute: ComputeStep, requests: readonly StepRequest[]): StepTokens {
    const numRequests = requests.length;
    this.#reserveRuns(numRequests);
    let numTokens = 0;
    let maxContextLength = 0;
    this.#queryStart[0] = 0;
    for (let i = 0; i < numRequests; i++) {
      const { start, numTokens: own } = requests[i];
      numTokens += own;
      this.#queryStart[i + 1] = numTokens;
      this.#contextLength[i] = start + own;
      maxContextLength = Math.max(maxContextLength, start + own);
    }
    return {
      numTokens,
      numRequests,
      maxContextLength,
      queryStart: compute.upload(this.#queryStart.subarray(0, numRequests + 1)),
      contextLength: compute.upload(this.#contextLength.subarray(0, numRequests)),
      places: this.#uploadPlaces(compute, requests, numTokens, undefined),
    };
  }

  /** Uploads what is written into a group, where that is less than all. */
  uploadMasked(compute: ComputeStep, requests: readonly StepRequest[], numTokens: number, groupId: LayerGroupId): MaskedWrites {
    return {
      places: this.#uploadPlaces(compute, requests, numTokens, groupId),
      runs: this.#uploadRuns(compute, requests, groupId),
    };
  }

  #uploadPlaces(
    compute: ComputeStep,
    requests: readonly StepRequest[],
    numTokens: number,
    groupId: LayerGroupId | undefined,
  ): StepData {
    if (this.#places.length < 2 * numTokens) this.#places = new Int32Array(4 * numTokens);
    const places = this.#places;
    let at = 0;
    for (let r = 0; r < requests.length; r++) {
      const { start, numTokens: own } = requests[r];
      const firstWritten = start + (groupId === undefined ? 0 : numHeld(requests[r], groupId));
      for (let position = start; position < start + own; position++) {
        places[at++] = position < firstWritten ? -1 : r;
        places[at++] = position;
      }
    }
    return compute.upload(places.subarray(0, at));
  }

  #uploadRuns(compute: ComputeStep, requests: readonly StepRequest[], groupId: LayerGroupId): WriteRuns {
    this.#reserveRuns(2 * requests.length);
    const requestOf: number[] = [];
    let row = 0;
    const add = (request: number, numTokens: number, contextLength: number) => {
      if (numTokens === 0) return;
      this.#contextLength[requestOf.length] = contextLength;
      requestOf.push(request);
      row += numTokens;
      this.#queryStart[requestOf.length] = row;
    };
    this.#queryStart[0] = 0;
    requests.forEach((request, r) => {
      const { start, numTokens } = request;
      const held = numHeld(request, groupId);
      add(-1, held, start + held);
      add(r, numTokens - held, start + numTokens);
    });
    const numRuns = requestOf.length;
    return {
      numRuns,
      requestOf,
      queryStart: compute.upload(this.#queryStart.subarray(0, numRuns + 1)),
      contextLength: compute.upload(this.#contextLength.subarray(0, numRuns)),
    };
  }

  #reserveRuns(numRuns: number): void {
    if (this.#queryStart.length > numRuns) return;
    this.#queryStart = new Uint32Array(2 * numRuns + 1);
    this.#contextLength = new Uint32Array(2 * numRuns);
  }
}

/** Whether a request gives tokens again that a group of its holds already: they must not be written there. */
export function isMasked(requests: readonly StepRequest[], groupId: LayerGroupId): boolean {
  for (let r = 0; r < requests.length; r++) if (numHeld(requests[r], groupId) > 0) return true;
  return false;
}

/** Tokens of a request in this step, from its first on, that a group holds already. */
function numHeld({ start, numTokens, matched, reusedGroups }: StepRequest, groupId: LayerGroupId): number {
  return start < matched && reusedGroups.has(groupId) ? Math.min(numTokens, matched - start) : 0;
}
