// What the kernels of paged attention share. The constants of the kernel, its bindings and page-places.wgsl stand in front.

struct Params {
  key: Pages,
  value: Pages,
  keyScale: Pages,
  valueScale: Pages,
  numRequests: u32,
  numQueryHeads: u32,
  // Words: the first row of `queries`, and from one row to the next.
  queriesBase: u32,
  queriesStride: u32,
  // First entries in `indices`: [numRequests], and for prefill [numRequests + 1].
  contextLengthAt: u32,
  queryStartAt: u32,
  slidingWindow: i32,
  numSinkTokens: i32,
  // Scores are powers of two: scale * log2(e), or scale / softCap under a soft cap.
  queryScale: f32,
  // softCap * log2(e)
  capScale: f32,
  // Partitions launched for each request and head: decode only.
  numPartitions: u32,
  // Selected blocks: their table in `indices`; words of `selection`; entries of a list, and tokens of a block.
  selectionTableAt: u32,
  selectionBase: u32,
  selectionPageStride: u32,
  selectionHeadStride: u32,
  maxBlocks: u32,
  tokensPerBlock: u32,
  // Learned sinks: a score of nothing for each query head, times log2(e).
  sinkScores: array<vec4f, SINK_VECS>,
}

const HEAD_VECS = HEAD_DIM / 4u;
const VALUE_VECS = VALUE_DIM / 4u;

// The score of nothing yet seen: below every score, and finite, so that differences of scores are no NaN.
const UNSEEN = -1e30f;

// Page of a token, negative where there is none. `indices` has every table.
fn pageOf(pages: Pages, request: u32, position: u32) -> i32 {
  let entry = entryOf(pages, request, position);
  if (entry < 0) {
    return -1;
  }
  return indices[entry];
}

fn contextLengthOf(request: u32) -> i32 {
  return indices[params.contextLengthAt + request];
}

// Positions that a query sees: [0, sinkEnd) and [windowStart, its own].
fn windowStartOf(query: i32) -> i32 {
  return max(0, query + 1 - params.slidingWindow);
}

fn sinkEndOf(windowStart: i32) -> i32 {
  return min(params.numSinkTokens, windowStart);
}

fn capped(score: f32) -> f32 {
  if (SOFT_CAP) {
    // tanh is 1 long before 16; some drivers overflow in it far beyond.
    return params.capScale * tanh(clamp(score, -16.0, 16.0));
  }
  return score;
}

// What the sum of weighted values is to be multiplied with. Weights are powers of two of scores less `base`, `total` is their sum.
// A query that saw nothing, for want of pages, gets zeros.
fn normaliser(base: f32, total: f32, queryHead: u32) -> f32 {
  if (LEARNED_SINKS) {
    let sink = params.sinkScores[queryHead / 4u][queryHead % 4u];
    let top = max(base, sink);
    let scale = exp2(base - top);
    return scale / (total * scale + exp2(sink - top));
  }
  return select(0.0, 1.0 / total, total > 0.0);
}
