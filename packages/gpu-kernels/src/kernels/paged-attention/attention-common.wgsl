// What the kernels of paged attention share. The constants of the kernel stand in front of this text.

struct Params {
  numRequests: u32,
  numQueryHeads: u32,
  // Words: the first row of `queries`, and from one row to the next.
  queriesBase: u32,
  queriesStride: u32,
  keyTokensPerPage: u32,
  keyTableStride: u32,
  // Words: page 0 of `keyPool`, and from one page to the next.
  keyBase: u32,
  keyPageStride: u32,
  valueTokensPerPage: u32,
  valueTableStride: u32,
  valueBase: u32,
  valuePageStride: u32,
  // Words of one token in either pool.
  rowWords: u32,
  slidingWindow: i32,
  numSinkTokens: i32,
  // Scores are powers of two: scale * log2(e), or scale / softCap under a soft cap.
  queryScale: f32,
  // softCap * log2(e)
  capScale: f32,
  // Partitions launched for each request and head: decode only.
  numPartitions: u32,
}

const HEAD_VECS = HEAD_DIM / 4u;

// The score of nothing yet seen: below every score, and finite, so that differences of scores are no NaN.
const UNSEEN = -1e30f;

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
