// Attention of one query a request over paged keys and values: one partition of the keys. See decode-kernel.ts.
//
// A workgroup has a partition of one request, and HEAD_TILE query heads of one key-value head. It goes through the partition a
// tile at a time. First a thread has keys of its own: the scores of KEYS_PER_THREAD keys with all heads. Then it has a head
// (and a share of the tile's keys): largest score, weights. Then it has a vec4 of the head (and another share of the keys): the
// weighted sum of values, again for all heads.
//
// Loops marked `unroll` are written out by the host: then an index of a private array is a literal.

// Scores, then weights, of the tile: [HEAD_TILE, TILE_KEYS]. At the end the sums of the threads: [WORKGROUP, 4].
var<workgroup> weights: array<f32, WEIGHTS>;
// First word of each value of the tile.
var<workgroup> valueWords: array<u32, TILE_KEYS>;
// Scale of each value of the tile.
var<workgroup> tileScales: array<f32, VALUE_SCALES>;
// A largest score, or a total, of each thread.
var<workgroup> threadStats: array<f32, WORKGROUP>;
// What the sums so far are to be multiplied with.
var<workgroup> rescale: array<f32, HEAD_TILE>;

// Threads of one vec4 of the head, while values are added up.
const VEC_THREADS = WORKGROUP / VALUE_VECS;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) localIndex: u32) {
  let thread = threadOf(localIndex);
  let part = group.x;
  let request = group.z;
  let kvHead = group.y / HEAD_TILES;
  let firstHead = (group.y % HEAD_TILES) * HEAD_TILE;
  let numHeads = min(HEAD_TILE, HEADS_PER_GROUP - firstHead);
  let firstQueryHead = kvHead * HEADS_PER_GROUP + firstHead;

  let p = partitioningOf(request);
  let seen = seenBy(request, kvHead);
  // Read once: else a software device reads all of it for every key.
  let keyPages = params.key;
  let valuePages = params.value;
  if (part >= p.numPartitions && params.numPartitions > 1u) {
    return;
  }
  let begin = part * p.keysPerPartition;
  let end = select(p.numKeys, begin + p.keysPerPartition, part + 1u < p.numPartitions);

  let queryVec = (params.queriesBase + request * params.queriesStride) / 4u + firstQueryHead * HEAD_VECS;
  let keyHeadWord = kvHead * HEAD_VECS * WORDS_PER_VEC;
  let valueHeadWord = kvHead * VALUE_VECS * WORDS_PER_VEC;

  let weightHead = thread / HEAD_THREADS;
  let headThread = thread % HEAD_THREADS;
  let sumVec = thread % VALUE_VECS;
  let vecThread = thread / VALUE_VECS;

  var base = UNSEEN;
  // Of the keys that this thread made weights of.
  var total = 0.0;
  var sum = array<vec4f, HEAD_TILE>();

  for (var tile = begin; tile < end; tile += TILE_KEYS) {
    let numKeys = min(TILE_KEYS, end - tile);

    var keyWord = array<u32, KEYS_PER_THREAD>();
    var keyScale = array<f32, KEYS_PER_THREAD>();
    var present = array<bool, KEYS_PER_THREAD>();
    for (var k = 0u; k < KEYS_PER_THREAD; k++) { // unroll
      let key = k * WORKGROUP + thread;
      if (key < numKeys) {
        let at = positionOf(seen, tile + key);
        if (at >= 0) {
          let position = u32(at);
          let keyPage = pageOf(keyPages, request, position);
          let valuePage = pageOf(valuePages, request, position);
          present[k] = keyPage >= 0 && valuePage >= 0;
          keyWord[k] = rowOf(keyPages, keyPage, position) + keyHeadWord;
          valueWords[key] = rowOf(valuePages, valuePage, position) + valueHeadWord;
          if (QUANTISED) {
            let valueScale = valueScaleOf(request, position, kvHead);
            keyScale[k] = keyScaleOf(request, position, kvHead);
            tileScales[key] = valueScale;
            present[k] = present[k] && !(keyScale[k] < 0.0 || valueScale < 0.0);
          }
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
        var product = products[h * KEYS_PER_THREAD + k] * params.queryScale;
        if (QUANTISED) {
          product *= keyScale[k];
        }
        let score = capped(product);
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
    threadStats[thread] = maxOfLanes(largest);
    workgroupBarrier();

    if (weightHead < numHeads) {
      let oldBase = base;
      for (var t = 0u; t < HEAD_THREADS; t += LANES) {
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
          var value = loadValue(valueWords[key] + sumVec * WORDS_PER_VEC);
          if (QUANTISED) {
            value *= tileScales[key];
          }
          for (var h = 0u; h < HEAD_TILE; h++) { // unroll
            sum[h] = fma(vec4f(weight[h]), value, sum[h]);
          }
        }
      }
    }
    workgroupBarrier();
  }

  // Bring together what the threads of a head, and of a vec4, have.
  threadStats[thread] = sumOfLanes(total);
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
        let at = (t * VALUE_VECS + sumVec) * 4u;
        headSum += vec4f(weights[at], weights[at + 1u], weights[at + 2u], weights[at + 3u]);
      }
      var headTotal = 0.0;
      for (var t = 0u; t < HEAD_THREADS; t += LANES) {
        headTotal += threadStats[h * HEAD_THREADS + t];
      }
      let row = request * params.numQueryHeads + firstQueryHead + h;
      if (params.numPartitions == 1u) {
        result[row * VALUE_VECS + sumVec] = headSum * normaliser(rescale[h], headTotal, firstQueryHead + h);
      } else {
        let at = (row * params.numPartitions + part) * (VALUE_VECS + 1u);
        result[at + sumVec] = headSum;
        if (sumVec == 0u) {
          result[at + VALUE_VECS] = vec4f(rescale[h], headTotal, 0.0, 0.0);
        }
      }
    }
    workgroupBarrier();
  }
}
