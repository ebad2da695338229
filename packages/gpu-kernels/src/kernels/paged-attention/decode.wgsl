// Attention of one query a request over paged keys and values: one partition of the keys. See decode-kernel.ts.
//
// A workgroup has a partition of one request, and HEAD_TILE query heads of one key-value head. It goes through the partition a
// tile at a time. First a thread has keys of its own: the scores of KEYS_PER_THREAD keys with all heads. Then it has a head
// (and a share of the tile's keys): largest score, weights. Then it has a vec4 of the head (and another share of the keys): the
// weighted sum of values, again for all heads.
//
// Loops marked `unroll` are written out by the host: then an index of a private array is a literal.

@group(0) @binding(0) var<uniform> params: Params;
// [numRequests, tableStride]: page indices, negative where there is no page.
@group(0) @binding(3) var<storage, read> keyTable: array<i32>;
@group(0) @binding(4) var<storage, read> valueTable: array<i32>;
// [numRequests, queriesStride]
@group(0) @binding(5) var<storage, read> queries: array<vec4f>;
// [numRequests]
@group(0) @binding(6) var<storage, read> contextLength: array<u32>;
// [numRequests, numQueryHeads, numPartitions, HEAD_VECS + 1]: the sum of weighted values; then base and total of the weights.
@group(0) @binding(7) var<storage, read_write> partials: array<vec4f>;
// [numRequests, numQueryHeads, headDim]
@group(0) @binding(8) var<storage, read_write> output: array<vec4f>;

// Scores, then weights, of the tile: [HEAD_TILE, TILE_KEYS]. At the end the sums of the threads: [WORKGROUP, 4].
var<workgroup> weights: array<f32, WEIGHTS>;
// First word of each value of the tile.
var<workgroup> valueWords: array<u32, TILE_KEYS>;
// A largest score, or a total, of each thread.
var<workgroup> threadStats: array<f32, WORKGROUP>;
// What the sums so far are to be multiplied with.
var<workgroup> rescale: array<f32, HEAD_TILE>;

// Threads of one head, while weights are made.
const HEAD_THREADS = WORKGROUP / HEAD_TILE;
// Threads of one vec4 of the head, while values are added up.
const VEC_THREADS = WORKGROUP / HEAD_VECS;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  let part = group.x;
  let request = group.z;
  let kvHead = group.y / HEAD_TILES;
  let firstHead = (group.y % HEAD_TILES) * HEAD_TILE;
  let numHeads = min(HEAD_TILE, HEADS_PER_GROUP - firstHead);
  let firstQueryHead = kvHead * HEADS_PER_GROUP + firstHead;

  let p = partitioningOf(contextLength[request]);
  if (part >= p.numPartitions && params.numPartitions > 1u) {
    return;
  }
  let begin = part * p.keysPerPartition;
  let end = select(p.numKeys, begin + p.keysPerPartition, part + 1u < p.numPartitions);

  let queryVec = (params.queriesBase + request * params.queriesStride) / 4u + firstQueryHead * HEAD_VECS;
  let headWord = kvHead * HEAD_VECS * WORDS_PER_VEC;

  let weightHead = thread / HEAD_THREADS;
  let headThread = thread % HEAD_THREADS;
  let sumVec = thread % HEAD_VECS;
  let vecThread = thread / HEAD_VECS;

  var base = UNSEEN;
  // Of the keys that this thread made weights of.
  var total = 0.0;
  var sum = array<vec4f, HEAD_TILE>();

  for (var tile = begin; tile < end; tile += TILE_KEYS) {
    let numKeys = min(TILE_KEYS, end - tile);

    var keyWord = array<u32, KEYS_PER_THREAD>();
    var present = array<bool, KEYS_PER_THREAD>();
    for (var k = 0u; k < KEYS_PER_THREAD; k++) { // unroll
      let key = k * WORKGROUP + thread;
      if (key < numKeys) {
        let i = i32(tile + key);
        let position = u32(select(i - p.sinkEnd + p.windowStart, i, i < p.sinkEnd));
        let keyPage = position / params.keyTokensPerPage;
        let valuePage = position / params.valueTokensPerPage;
        if (keyPage < params.keyTableStride && valuePage < params.valueTableStride) {
          let keyIndex = keyTable[request * params.keyTableStride + keyPage];
          let valueIndex = valueTable[request * params.valueTableStride + valuePage];
          present[k] = keyIndex >= 0 && valueIndex >= 0;
          keyWord[k] = params.keyBase + u32(keyIndex) * params.keyPageStride
            + (position % params.keyTokensPerPage) * params.rowWords + headWord;
          valueWords[key] = params.valueBase + u32(valueIndex) * params.valuePageStride
            + (position % params.valueTokensPerPage) * params.rowWords + headWord;
        }
      }
    }
    var products = array<f32, HEAD_TILE * KEYS_PER_THREAD>();
    for (var c = 0u; c < HEAD_VECS; c++) {
      var key = array<vec4f, KEYS_PER_THREAD>();
      for (var k = 0u; k < KEYS_PER_THREAD; k++) { // unroll
        if (present[k]) {
          key[k] = loadKey(keyWord[k] + c * WORDS_PER_VEC);
        }
      }
      for (var h = 0u; h < HEAD_TILE; h++) { // unroll
        if (h < numHeads) {
          let query = queries[queryVec + h * HEAD_VECS + c];
          for (var k = 0u; k < KEYS_PER_THREAD; k++) { // unroll
            products[h * KEYS_PER_THREAD + k] += dot(query, key[k]);
          }
        }
      }
    }
    for (var k = 0u; k < KEYS_PER_THREAD; k++) { // unroll
      for (var h = 0u; h < HEAD_TILE; h++) { // unroll
        let score = capped(products[h * KEYS_PER_THREAD + k] * params.queryScale);
        weights[h * TILE_KEYS + k * WORKGROUP + thread] = select(UNSEEN, score, present[k]);
      }
    }
    workgroupBarrier();

    var largest = UNSEEN;
    if (weightHead < numHeads) {
      for (var key = headThread; key < numKeys; key += HEAD_THREADS) {
        largest = max(largest, weights[weightHead * TILE_KEYS + key]);
      }
    }
    threadStats[thread] = largest;
    workgroupBarrier();

    if (weightHead < numHeads) {
      let oldBase = base;
      for (var t = 0u; t < HEAD_THREADS; t++) {
        base = max(base, threadStats[weightHead * HEAD_THREADS + t]);
      }
      let scale = exp2(oldBase - base);
      total *= scale;
      for (var key = headThread; key < numKeys; key += HEAD_THREADS) {
        let at = weightHead * TILE_KEYS + key;
        let weight = select(exp2(weights[at] - base), 0.0, weights[at] == UNSEEN);
        weights[at] = weight;
        total += weight;
      }
      if (headThread == 0u) {
        rescale[weightHead] = scale;
      }
    }
    workgroupBarrier();

    if (vecThread < VEC_THREADS) {
      for (var h = 0u; h < HEAD_TILE; h++) { // unroll
        sum[h] *= rescale[h];
      }
      for (var key = vecThread; key < numKeys; key += VEC_THREADS) {
        var weight = array<f32, HEAD_TILE>();
        var any = false;
        for (var h = 0u; h < HEAD_TILE; h++) { // unroll
          weight[h] = weights[h * TILE_KEYS + key];
          any = any || (h < numHeads && !(weight[h] == 0.0));
        }
        // A value without weight is not looked at: its page may be missing.
        if (any) {
          let value = loadValue(valueWords[key] + sumVec * WORDS_PER_VEC);
          for (var h = 0u; h < HEAD_TILE; h++) { // unroll
            sum[h] = fma(vec4f(weight[h]), value, sum[h]);
          }
        }
      }
    }
    workgroupBarrier();
  }

  // Bring together what the threads of a head, and of a vec4, have.
  threadStats[thread] = total;
  if (headThread == 0u && weightHead < HEAD_TILE) {
    rescale[weightHead] = base;
  }
  for (var h = 0u; h < HEAD_TILE; h++) { // unroll
    weights[thread * 4u] = sum[h].x;
    weights[thread * 4u + 1u] = sum[h].y;
    weights[thread * 4u + 2u] = sum[h].z;
    weights[thread * 4u + 3u] = sum[h].w;
    workgroupBarrier();
    if (vecThread == 0u && h < numHeads) {
      var headSum = vec4f();
      for (var t = 0u; t < VEC_THREADS; t++) {
        let at = (t * HEAD_VECS + sumVec) * 4u;
        headSum += vec4f(weights[at], weights[at + 1u], weights[at + 2u], weights[at + 3u]);
      }
      var headTotal = 0.0;
      for (var t = 0u; t < HEAD_THREADS; t++) {
        headTotal += threadStats[h * HEAD_THREADS + t];
      }
      let row = request * params.numQueryHeads + firstQueryHead + h;
      if (params.numPartitions == 1u) {
        // A query that saw nothing, for want of pages, gets zeros.
        output[row * HEAD_VECS + sumVec] = headSum * select(0.0, 1.0 / headTotal, headTotal > 0.0);
      } else {
        let at = (row * params.numPartitions + part) * (HEAD_VECS + 1u);
        partials[at + sumVec] = headSum;
        if (sumVec == 0u) {
          partials[at + HEAD_VECS] = vec4f(rescale[h], headTotal, 0.0, 0.0);
        }
      }
    }
    workgroupBarrier();
  }
}
