// Attention of packed chunks over paged keys and values. See prefill-kernel.ts for shapes and formulas.
//
// A workgroup has a tile of queries of one request and the query heads of one key-value head. A row is one query of one head;
// a thread owns ROWS rows, and their scores and outputs never leave it. All threads walk the same keys in the same order, so
// the workgroup reads each key and value from memory about once. Where a row is too wide for one thread, SLICES neighbouring
// threads share it, VECS vec4 of the key and SUM_VECS of the value each, and add up their parts of the scores: in their subgroup
// where it holds them all, else in workgroup memory (SHARED_SCORES).
//
// Keys are taken one by one in the order of their positions, and a key that a row does not see leaves no trace in it. So a
// row comes out the same to the bit however the prompt was cut into chunks, and whatever it is packed with.
//
// Loops marked `unroll` are written out by the host: then an index of a private array is a literal.

// Parts of scores, [2, KEY_BATCH, WORKGROUP]: one half is written while the other may still be read.
var<workgroup> partScores: array<f32, PART_SCORES>;

// A row is rescaled when a score passes its base by this much; until then weights are at most 2^8.
const HEADROOM = 8.0;

const NEVER = 0x7fffffff;

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) localIndex: u32,
) {
  let thread = threadOf(localIndex);
  // Late tiles see most keys: they go first. Request r has the tiles from queryStart[r] / QUERY_TILE + r on.
  let tile = groups.x - 1u - group.x;
  var request = 0u;
  var beyond = params.numRequests;
  while (beyond - request > 1u) {
    let middle = (request + beyond) / 2u;
    if (queryStartOf(middle) / QUERY_TILE + middle <= tile) {
      request = middle;
    } else {
      beyond = middle;
    }
  }
  let begin = queryStartOf(request);
  let numQueries = queryStartOf(request + 1u) - begin;
  let firstQuery = (tile - (begin / QUERY_TILE + request)) * QUERY_TILE;
  if (firstQuery >= numQueries) {
    return;
  }
  let kvHead = group.y / HEAD_TILES;
  let firstHead = (group.y % HEAD_TILES) * HEAD_TILE;

  let context = contextLengthOf(request);
  let firstPosition = context - i32(numQueries) + i32(firstQuery);
  let lastPosition = min(firstPosition + i32(QUERY_TILE), context) - 1;

  // This thread's part of a head of keys, and of values: its first vec4, and words to it from the start of a token's row.
  let firstVec = (thread % SLICES) * VECS;
  let firstSumVec = (thread % SLICES) * SUM_VECS;
  let keyHeadWord = (kvHead * HEAD_VECS + firstVec) * WORDS_PER_VEC;
  let valueHeadWord = (kvHead * VALUE_VECS + firstSumVec) * WORDS_PER_VEC;

  var query = array<vec4f, ROWS * VECS>();
  var sum = array<vec4f, ROWS * SUM_VECS>();
  var total = array<f32, ROWS>();
  var base = array<f32, ROWS>();
  // Of the query in the request; -1 for a row beyond the tile, which sees nothing.
  var position = array<i32, ROWS>();
  // [token, head] of the output.
  var outputRow = array<u32, ROWS>();
  var early = NEVER;
  var late = -1;
  for (var r = 0u; r < ROWS; r++) {
    let row = thread / SLICES * ROWS + r;
    let queryInRequest = firstQuery + row / HEAD_TILE;
    let head = firstHead + row % HEAD_TILE;
    position[r] = -1;
    base[r] = UNSEEN;
    if (row < QUERY_TILE * HEAD_TILE && queryInRequest < numQueries && head < HEADS_PER_GROUP) {
      position[r] = context - i32(numQueries) + i32(queryInRequest);
      early = min(early, position[r]);
      late = max(late, position[r]);
      let token = begin + queryInRequest;
      let queryHead = kvHead * HEADS_PER_GROUP + head;
      outputRow[r] = token * params.numQueryHeads + queryHead;
      let queryVec = (params.queriesBase + token * params.queriesStride) / 4u + queryHead * HEAD_VECS + firstVec;
      for (var c = 0u; c < VECS; c++) {
        if (firstVec + c < HEAD_VECS) {
          query[r * VECS + c] = queries[queryVec + c] * params.queryScale;
        }
      }
    }
  }

  // Runs of keys that lie in one page of each pool. Pages outside the segments are never looked at.
  var parity = 0u;
  for (var s = 0u; s < numSegments(); s++) {
    let segment = segmentOf(s, request, kvHead, firstPosition, lastPosition);
    var next = segment.x;
    while (next < segment.y) {
      let runBegin = next;
      let first = u32(runBegin);
      let keysInPage = params.key.tokensPerPage - first % params.key.tokensPerPage;
      let valuesInPage = params.value.tokensPerPage - first % params.value.tokensPerPage;
      let runEnd = min(runBegin + i32(min(keysInPage, valuesInPage)), segment.y);
      next = runEnd;
      let keyPage = pageOf(params.key, request, first);
      let valuePage = pageOf(params.value, request, first);
      let keyScale = keyScaleOf(request, first, kvHead);
      let valueScale = valueScaleOf(request, first, kvHead);
      if (keyPage < 0 || valuePage < 0 || (QUANTISED && (keyScale < 0.0 || valueScale < 0.0))) {
        continue;
      }
      var keyWord = rowOf(params.key, keyPage, first) + keyHeadWord;
      var valueWord = rowOf(params.value, valuePage, first) + valueHeadWord;

      for (var batch = runBegin; batch < runEnd; batch += i32(KEY_BATCH)) {
        let batchEnd = min(batch + i32(KEY_BATCH), runEnd);
        var part = parity * KEY_BATCH * WORKGROUP;
        if (SHARED_SCORES) {
          for (var key = batch; key < batchEnd; key++) {
            partScores[part + thread] = scores(&query, keyWord, firstVec)[0];
            keyWord += params.key.rowStride;
            part += WORKGROUP;
          }
          workgroupBarrier();
          part = parity * KEY_BATCH * WORKGROUP + thread / SLICES * SLICES;
          parity = 1u - parity;
        }
        for (var key = batch; key < batchEnd; key++) {
          var score = array<f32, ROWS>();
          // Threads that share a row are together here, whatever they see. ROWS is 1 for them.
          if (SLICES > 1u && !SHARED_SCORES) {
            score[0] = sumOfLanes(scores(&query, keyWord, firstVec)[0]);
          }
          if (key <= late && (early - key < params.slidingWindow || key < params.numSinkTokens)) {
            if (SHARED_SCORES) {
              for (var t = 0u; t < SLICES; t++) { // unroll
                score[0] += partScores[part + t];
              }
            }
            if (SLICES == 1u) {
              score = scores(&query, keyWord, firstVec);
            }
            var value = array<vec4f, SUM_VECS>();
            for (var c = 0u; c < SUM_VECS; c++) { // unroll
              value[c] = loadValue(valueWord + valuePart(firstSumVec, c));
            }
            var seen = array<bool, ROWS>();
            var exponent = array<f32, ROWS>();
            var beyondBase = false;
            for (var r = 0u; r < ROWS; r++) { // unroll
              if (QUANTISED) {
                score[r] *= keyScale;
              }
              let distance = position[r] - key;
              seen[r] = (distance >= 0) & ((distance < params.slidingWindow) | (key < params.numSinkTokens));
              exponent[r] = select(UNSEEN, capped(score[r]), seen[r]);
              beyondBase = beyondBase | (exponent[r] > base[r] + HEADROOM);
            }
            if (beyondBase) {
              for (var r = 0u; r < ROWS; r++) { // unroll
                if (exponent[r] > base[r] + HEADROOM) {
                  let scale = exp2(base[r] - exponent[r]);
                  base[r] = exponent[r];
                  total[r] *= scale;
                  for (var c = 0u; c < SUM_VECS; c++) { // unroll
                    sum[r * SUM_VECS + c] *= scale;
                  }
                }
              }
            }
            for (var r = 0u; r < ROWS; r++) { // unroll
              if (seen[r]) {
                var weight = exp2(exponent[r] - base[r]);
                total[r] += weight;
                if (QUANTISED) {
                  weight *= valueScale;
                }
                for (var c = 0u; c < SUM_VECS; c++) { // unroll
                  sum[r * SUM_VECS + c] = fma(vec4f(weight), value[c], sum[r * SUM_VECS + c]);
                }
              }
            }
          }
          if (!SHARED_SCORES) {
            keyWord += params.key.rowStride;
          }
          valueWord += params.value.rowStride;
          part += WORKGROUP;
        }
      }
    }
  }

  for (var r = 0u; r < ROWS; r++) {
    if (position[r] >= 0) {
      let scale = normaliser(base[r], total[r], outputRow[r] % params.numQueryHeads);
      for (var c = 0u; c < SUM_VECS; c++) {
        if (firstSumVec + c < VALUE_VECS) {
          output[outputRow[r] * VALUE_VECS + firstSumVec + c] = sum[r * SUM_VECS + c] * scale;
        }
      }
    }
  }
}

fn queryStartOf(request: u32) -> u32 {
  return u32(indices[params.queryStartAt + request]);
}

// Words from this thread's part of a head to its vec4 number c. Where SLICES * VECS is more than the head, the last thread of a row
// reads the last vec4 again: its query is 0 there, and nobody reads its sum.
fn keyPart(firstVec: u32, c: u32) -> u32 {
  return vecInHead(firstVec, c, SLICES * VECS, HEAD_VECS);
}

fn valuePart(firstVec: u32, c: u32) -> u32 {
  return vecInHead(firstVec, c, SLICES * SUM_VECS, VALUE_VECS);
}

fn vecInHead(firstVec: u32, c: u32, numCovered: u32, numVecs: u32) -> u32 {
  if (numCovered > numVecs) {
    return (min(firstVec + c, numVecs - 1u) - firstVec) * WORDS_PER_VEC;
  }
  return c * WORDS_PER_VEC;
}

// This thread's part of the product of one key with each of its rows.
fn scores(query: ptr<function, array<vec4f, ROWS * VECS>>, keyWord: u32, firstVec: u32) -> array<f32, ROWS> {
  var products = array<vec4f, ROWS>();
  for (var c = 0u; c < VECS; c++) { // unroll
    let key = loadKey(keyWord + keyPart(firstVec, c));
    for (var r = 0u; r < ROWS; r++) { // unroll
      products[r] = fma((*query)[r * VECS + c], key, products[r]);
    }
  }
  var parts = array<f32, ROWS>();
  for (var r = 0u; r < ROWS; r++) { // unroll
    parts[r] = (products[r].x + products[r].y) + (products[r].z + products[r].w);
  }
  return parts;
}
