/** One request of a trace, with its tokens made when they are asked for: a whole workload of them would be hundreds of megabytes. */
export interface TraceRequest {
  /** Tokens of the prompt, >= 1. */
  promptLength: number;
  /** Tokens of the answer, >= 1. */
  outputLength: number;
  /** The prompt; a fresh array at every call. */
  prompt(): Uint32Array;
  /** Token `index` of the answer. */
  outputToken(index: number): number;
}

/** Token `offset` of the block that a hash id names, in the vocabulary that the traces' description fixes. */
export function tokenOfHashId(hashId: number, offset: number): number {
  let x = (Math.imul(hashId, 0x9e3779b1) + Math.imul(offset, 0x85ebca77)) | 0;
  x ^= x >>> 16;
  x = Math.imul(x, 0x7feb352d);
  x ^= x >>> 15;
  x = Math.imul(x, 0x846ca68b);
  x ^= x >>> 16;
  return (x >>> 0) % 32_000;
}

/** A request whose prompt is named by the hash ids of its blocks. `line` tells its answer from those of all others. */
export function hashedRequest(options: {
  hashIds: ArrayLike<number>;
  blockTokens: number;
  promptLength: number;
  outputLength: number;
  line: number;
}): TraceRequest {
  const { hashIds, blockTokens, promptLength, outputLength, line } = options;
  return {
    promptLength,
    outputLength,
    prompt: () => {
      const tokens = new Uint32Array(promptLength);
      for (let block = 0, at = 0; at < promptLength; block++) {
        for (let offset = 0; offset < blockTokens && at < promptLength; offset++)
          tokens[at++] = tokenOfHashId(hashIds[block], offset);
      }
      return tokens;
    },
    outputToken: (index) => tokenOfHashId(0x40000000 + line, index),
  };
}
