// Attention of packed chunks over paged keys and values. See prefill-kernel.ts for shapes and formulas.
//
// A workgroup has a tile of queries of one request and the query heads of one key-value head. A row is one query of one head;
// a thread owns ROWS rows, and their scores and outputs never leave it. All threads walk the same keys in the same order, so
// the workgroup reads each key and value from memory about once. Where a row is too wide for one thread, SLICES neighbouring
// threads share it, VECS vec4 each, and add up their parts of the scores in workgroup memory.
//
// Keys are taken one by one in the order of their positions, and a key that a row does not see leaves no trace in it. So a
// row comes out the same to the bit however the prompt was cut into chunks, and whatever it is packed with.
//
// Loops marked `unroll` are written out by the host: then an index of a private array is a literal.

@group(0) @binding(0) var<uniform> params: Params;
// [numRequests, tableStride]: page indices, negative where there is no page.
@group(0) @binding(3) var<storage, read> keyTable: array<i32>;
@group(0) @binding(4) var<storage, read> valueTable: array<i32>;
// [numTokens, queriesStride]
@group(0) @binding(5) var<storage, read> queries: array<vec4f>;
// [numRequests + 1]
@group(0) @binding(6) var<storage, read> queryStart: array<u32>;
// [numRequests]
@group(0) @binding(7) var<storage, read> contextLength: array<u32>;
// [numTokens, numQueryHeads, headDim]
@group(0) @binding(8) var<storage, read_write> output: array<vec4f>;

// Parts of scores, [2, KEY_BATCH, WORKGROUP]: one half is written while the other may still be read.
var<workgroup> partScores: array<f32, PART_SCORES>;

// A row is rescaled when a score passes its base by this much; until then weights are at most 2^8.
const HEADROOM = 8.0;

const NEVER = 0x7fffffff;

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) thread: u32,
) {
  // Late tiles see most keys: they go first. Request r has the tiles from queryStart[r] / QUERY_TILE + r on.
  let tile = groups.x - 1u - group.x;
  var request = 0u;
  var beyond = params.numRequests;
  while (beyond - request > 1u) {
    let middle = (request + beyond) / 2u;
    if (queryStart[middle] / QUERY_TILE + middle <= tile) {
      request = middle;
    } else {
      beyond = middle;
    }
  }
  let begin = queryStart[request];
  let numQueries = queryStart[request + 1u] - begin;
  let firstQuery = (tile - (begin / QUERY_TILE + request)) * QUERY_TILE;
  if (firstQuery >= numQueries) {
    return;
  }
  let kvHead = group.y / HEAD_TILES;
  let firstHead = (group.y % HEAD_TILES) * HEAD_TILE;

  let context = i32(contextLength[request]);
  let firstPosition = context - i32(numQueries) + i32(firstQuery);
  let lastPosition = min(firstPosition + i32(QUERY_TILE), context) - 1;
  let windowStart = windowStartOf(firstPosition);
  let sinkEnd = sinkEndOf(windowStart);

  let firstVec = (thread % SLICES) * VECS;
  // Words from the start of a token's row to this thread's part of the head.
  let headWord = (kvHead * HEAD_VECS + firstVec) * WORDS_PER_VEC;

  var query = array<vec4f, ROWS * VECS>();
  var sum = array<vec4f, ROWS * VECS>();
  var total = array<f32, ROWS>();
  var base = array<f32, ROWS>();
  // Of the query in the request; -1 for a row beyond the tile, which sees nothing.
  var position = array<i32, ROWS>();
  // First vec4 in `output`.
  var outputVec = array<u32, ROWS>();
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
      let headVec = (kvHead * HEADS_PER_GROUP + head) * HEAD_VECS + firstVec;
      outputVec[r] = token * params.numQueryHeads * HEAD_VECS + headVec;
      let queryVec = (params.queriesBase + token * params.queriesStride) / 4u + headVec;
      for (var c = 0u; c < VECS; c++) {
        if (firstVec + c < HEAD_VECS) {
          query[r * VECS + c] = queries[queryVec + c] * params.queryScale;
        }
      }
    }
  }

  // Runs of keys that lie in one page of each pool. Pages outside [0, sinkEnd) and [windowStart, lastPosition] are never looked at.
  var parity = 0u;
  var next = select(windowStart, 0, sinkEnd > 0);
  while (next <= lastPosition) {
    let runBegin = next;
    let keyPage = u32(runBegin) / params.keyTokensPerPage;
    let valuePage = u32(runBegin) / params.valueTokensPerPage;
    let keyInPage = u32(runBegin) % params.keyTokensPerPage;
    let valueInPage = u32(runBegin) % params.valueTokensPerPage;
    let numVisible = u32(select(lastPosition + 1, sinkEnd, runBegin < sinkEnd) - runBegin);
    let numInPages = min(params.keyTokensPerPage - keyInPage, params.valueTokensPerPage - valueInPage);
    let runEnd = runBegin + i32(min(numVisible, numInPages));
    next = select(runEnd, windowStart, runEnd == sinkEnd);
    if (keyPage >= params.keyTableStride || valuePage >= params.valueTableStride) {
      break;
    }
    let keyIndex = keyTable[request * params.keyTableStride + keyPage];
    let valueIndex = valueTable[request * params.valueTableStride + valuePage];
    if (keyIndex < 0 || valueIndex < 0) {
      continue;
    }
    var keyWord = params.keyBase + u32(keyIndex) * params.keyPageStride + keyInPage * params.rowWords + headWord;
    var valueWord = params.valueBase + u32(valueIndex) * params.valuePageStride + valueInPage * params.rowWords + headWord;

    for (var batch = runBegin; batch < runEnd; batch += i32(KEY_BATCH)) {
      let batchEnd = min(batch + i32(KEY_BATCH), runEnd);
      var part = parity * KEY_BATCH * WORKGROUP;
      if (SLICES > 1u) {
        // Shared rows are alone in their threads: ROWS is 1.
        for (var key = batch; key < batchEnd; key++) {
          partScores[part + thread] = scores(&query, keyWord, firstVec)[0];
          keyWord += params.rowWords;
          part += WORKGROUP;
        }
        workgroupBarrier();
        part = parity * KEY_BATCH * WORKGROUP + thread / SLICES * SLICES;
        parity = 1u - parity;
      }
      for (var key = batch; key < batchEnd; key++) {
        if (key <= late && (early - key < params.slidingWindow || key < params.numSinkTokens)) {
          var score = array<f32, ROWS>();
          if (SLICES > 1u) {
            for (var s = 0u; s < SLICES; s++) { // unroll
              score[0] += partScores[part + s];
            }
          } else {
            score = scores(&query, keyWord, firstVec);
          }
          var value = array<vec4f, VECS>();
          for (var c = 0u; c < VECS; c++) { // unroll
            value[c] = loadValue(valueWord + partWord(firstVec, c));
          }
          var seen = array<bool, ROWS>();
          var exponent = array<f32, ROWS>();
          var beyondBase = false;
          for (var r = 0u; r < ROWS; r++) { // unroll
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
                for (var c = 0u; c < VECS; c++) { // unroll
                  sum[r * VECS + c] *= scale;
                }
              }
            }
          }
          for (var r = 0u; r < ROWS; r++) { // unroll
            if (seen[r]) {
              let weight = exp2(exponent[r] - base[r]);
              total[r] += weight;
              for (var c = 0u; c < VECS; c++) { // unroll
                sum[r * VECS + c] = fma(vec4f(weight), value[c], sum[r * VECS + c]);
              }
            }
          }
        }
        if (SLICES == 1u) {
          keyWord += params.rowWords;
        }
        valueWord += params.rowWords;
        part += WORKGROUP;
      }
    }
  }

  for (var r = 0u; r < ROWS; r++) {
    if (position[r] >= 0) {
      // A query that saw nothing, for want of pages, gets zeros.
      let scale = select(0.0, 1.0 / total[r], total[r] > 0.0);
      for (var c = 0u; c < VECS; c++) {
        if (firstVec + c < HEAD_VECS) {
          output[outputVec[r] + c] = sum[r * VECS + c] * scale;
        }
      }
    }
  }
}

// Words from this thread's part of a head to its vec4 number c. Where SLICES * VECS is more than the head, the last thread of a row
// reads the last vec4 again: its query is 0 there, and nobody reads its sum.
fn partWord(firstVec: u32, c: u32) -> u32 {
  if (SLICES * VECS > HEAD_VECS) {
    return (min(firstVec + c, HEAD_VECS - 1u) - firstVec) * WORDS_PER_VEC;
  }
  return c * WORDS_PER_VEC;
}

// This thread's part of the product of one key with each of its rows.
fn scores(query: ptr<function, array<vec4f, ROWS * VECS>>, keyWord: u32, firstVec: u32) -> array<f32, ROWS> {
  var products = array<vec4f, ROWS>();
  for (var c = 0u; c < VECS; c++) { // unroll
    let key = loadKey(keyWord + partWord(firstVec, c));
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
