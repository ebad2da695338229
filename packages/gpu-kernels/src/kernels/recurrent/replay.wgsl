// A few tokens of each of many requests, without a write of the state: it stays the checkpoint that it was, and what the tokens did
// to it since goes to a ring, a row each. With E(j, t) the decay between rows j and t, the output of row t is
//   S(t) query = E(checkpoint, t) * S(checkpoint) query + sum over rows j <= t of E(j, t) * (key(j) . query) * u(j)
// so a ring of n rows costs n dot products and n scaled vectors, and not n updates of the state.
//
// Where the ring is to be settled, the state is brought past the rows that it held before this call and written to the target page.
// The rows of this call are not in it: they may still be taken back.
//
// One workgroup = ROW_GROUPS x 4 rows of one head of one request, laid out as in the scan. What needs no other invocation comes first:
// read-outs of the checkpoint, dot products, decays, and the settling. Behind the one barrier, an invocation for each row group
// goes through the tokens in their order. A ring row that is written here is never one that is read here, by whichever workgroup.

override ROW_GROUPS: u32;
// Tokens of a request in one call, at most.
override MAX_TOKENS: u32;

override WORKGROUP_SIZE = ROW_GROUPS * SLICES;
override ROW_TILES_PER_HEAD = (ROW_GROUPS_PER_HEAD + ROW_GROUPS - 1u) / ROW_GROUPS;

// Vectors that a token reads the state with: its query, and by the delta rule its key before that.
const QUERY = 0u;
const KEY = 1u;
const NUM_PROBES = select(1u, 2u, DELTA);

override NUM_DOTS = MAX_TOKENS * NUM_PROBES * RING_ROWS;
override NUM_READOUTS = MAX_TOKENS * NUM_PROBES * WORKGROUP_SIZE;
override NUM_NEW_US = MAX_TOKENS * ROW_GROUPS;

// Logarithm of the decay from the checkpoint to behind each row. Rows of the ring first, then those of this call.
var<workgroup> logDecays: array<f32, RING_ROWS>;
// Keys of the rows times probes of the tokens, [MAX_TOKENS, NUM_PROBES, RING_ROWS].
var<workgroup> dots: array<f32, NUM_DOTS>;
// What each slice of the checkpoint gives for a probe, [MAX_TOKENS, NUM_PROBES, ROW_GROUPS, SLICES].
var<workgroup> readouts: array<vec4f, NUM_READOUTS>;
// Factors of key and query of each token.
var<workgroup> norms: array<vec2f, MAX_TOKENS>;
// Of the tokens of this call; each row group reads only what it wrote.
var<workgroup> newUs: array<vec4f, NUM_NEW_US>;

// What a workgroup works on.
struct Work {
  head: u32,
  firstRow: u32,
  // First row of this call among `tokens`.
  start: u32,
  numTokens: u32,
  ringPage: u32,
  // The sequence's token that ring row 0 belongs to. The ring repeats every RING_ROWS tokens.
  ringPosition: u32,
  // Rows that the ring holds.
  length: u32,
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn main(
  @builtin(workgroup_id) workgroup: vec3u,
  @builtin(num_workgroups) numWorkgroups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let index = workgroup.y * numWorkgroups.x + workgroup.x;
  let request = index / (NUM_HEADS * ROW_TILES_PER_HEAD);
  if (request >= params.numRequests) {
    return;
  }
  let start = tables[params.startsOffset + request];
  let numTokens = min(tables[params.startsOffset + request + 1u] - start, MAX_TOKENS);
  let ringPage = tables[params.ringIndexOffset + request];
  let hasRing = ringPage < params.numRingPages;
  let position = tables[params.cursorsOffset + request];
  // Without a page there is no row to replay.
  let length = select(0u, tables[params.cursorsOffset + params.numRequests + request], hasRing);
  let settles = tables[params.cursorsOffset + 2u * params.numRequests + request] != 0u;
  if (numTokens == 0u && !settles) {
    return;
  }
  let head = index / ROW_TILES_PER_HEAD % NUM_HEADS;
  let firstRow = index % ROW_TILES_PER_HEAD * ROW_GROUPS * TILE_ROWS;
  let work = Work(head, firstRow, start, numTokens, ringPage, position % RING_ROWS + RING_ROWS - length, length);

  readCheckpoint(work, request, settles, lane);
  multiplyKeys(work, lane);
  sumLogDecays(work, lane);
  measureTokens(work, lane);
  workgroupBarrier();
  if (lane < ROW_GROUPS) {
    takeTokens(work, lane, hasRing);
  }
  if (hasRing) {
    appendShared(work, lane);
  }
}

// Every invocation reads its tile of the checkpoint once, with all probes, and brings it up to the ring where that is to be.
fn readCheckpoint(work: Work, request: u32, settles: bool, lane: u32) {
  let row = work.firstRow + lane / SLICES * TILE_ROWS;
  let column = lane % SLICES * TILE_COLUMNS;
  var tile = loadTile(sourcePage(request), work.head, row, column);
  for (var k = 0u; k < work.numTokens; k++) {
    let token = work.start + k;
    let place = k * NUM_PROBES * WORKGROUP_SIZE + lane;
    readouts[place] = readout(tile, querySlice(token, work.head, column));
    if (DELTA) {
      readouts[place + WORKGROUP_SIZE] = readout(tile, keySlice(token, work.head, column));
    }
  }
  if (!settles) {
    return;
  }
  for (var j = 0u; j < work.length; j++) {
    let place = placeOfRow(work.ringPage, work.ringPosition + j);
    let key = mat4x4f(
      loadRingKey(place, work.head, column),
      loadRingKey(place, work.head, column + 4u),
      loadRingKey(place, work.head, column + 8u),
      loadRingKey(place, work.head, column + 12u),
    );
    tile = advanced(tile, exp(loadRingDecay(place, work.head)), loadRingU(place, work.head, row), key);
  }
  storeTile(targetPage(request), work.head, row, column, tile);
}

fn multiplyKeys(work: Work, lane: u32) {
  let numRows = work.length + work.numTokens;
  for (var i = lane; i < work.numTokens * NUM_PROBES * numRows; i += WORKGROUP_SIZE) {
    let j = i % numRows;
    let probe = i / numRows % NUM_PROBES;
    let k = i / numRows / NUM_PROBES;
    let isNew = j >= work.length;
    let newToken = work.start + j - work.length;
    let place = placeOfRow(work.ringPage, work.ringPosition + j);
    var sum = 0.0;
    for (var column = 0u; column < STATE_SIZE; column += 4u) {
      var key: vec4f;
      if (isNew) {
        key = tokenKey(newToken, work.head, column);
      } else {
        key = loadRingKey(place, work.head, column);
      }
      sum += dot(key, probeOf(work, k, probe, column));
    }
    dots[(k * NUM_PROBES + probe) * RING_ROWS + j] = sum;
  }
}

fn probeOf(work: Work, k: u32, probe: u32, column: u32) -> vec4f {
  if (probe == KEY) {
    return tokenKey(work.start + k, work.head, column);
  }
  return tokenQuery(work.start + k, work.head, column);
}

fn sumLogDecays(work: Work, lane: u32) {
  for (var j = lane; j < work.length + work.numTokens; j += WORKGROUP_SIZE) {
    var sum = 0.0;
    for (var i = 0u; i <= j; i++) {
      if (i < work.length) {
        sum += loadRingDecay(placeOfRow(work.ringPage, work.ringPosition + i), work.head);
      } else {
        sum += tokenGate(work.start + i - work.length, work.head).logDecay;
      }
    }
    logDecays[j] = sum;
  }
}

fn measureTokens(work: Work, lane: u32) {
  for (var k = lane; k < work.numTokens; k += WORKGROUP_SIZE) {
    var squares = vec2f();
    if (NORMALIZE) {
      for (var column = 0u; column < STATE_SIZE; column += 4u) {
        let key = tokenKey(work.start + k, work.head, column);
        let query = tokenQuery(work.start + k, work.head, column);
        squares += vec2f(dot(key, key), dot(query, query));
      }
    }
    norms[k] = normsOf(squares);
  }
}

// Outputs of the tokens for one row group, and what they do to the state, in the order of the tokens.
fn takeTokens(work: Work, rowGroup: u32, hasRing: bool) {
  let row = work.firstRow + rowGroup * TILE_ROWS;
  for (var k = 0u; k < work.numTokens; k++) {
    let token = work.start + k;
    let value = tokenValue(token, work.head, row);
    let scale = tokenGate(token, work.head).scale;
    var u = value * scale;
    if (DELTA) {
      u = (value - readBy(work, k, KEY, work.length + k, rowGroup) * norms[k].x) * scale;
    }
    newUs[k * ROW_GROUPS + rowGroup] = u;
    let output = readBy(work, k, QUERY, work.length + k + 1u, rowGroup);
    if (DELTA) {
      storeY(token, work.head, row, output * norms[k].y);
    } else {
      storeY(token, work.head, row, value * skipOf(work.head) + output);
    }
    if (hasRing) {
      let place = placeOfRow(work.ringPage, work.ringPosition + work.length + k);
      storeRing(place, work.head * HEAD_DIM + row, numRowsFrom(row), u);
    }
  }
}

// What the checkpoint and the first `numRows` rows give for a probe of token k, decayed until behind the token.
fn readBy(work: Work, k: u32, probe: u32, numRows: u32, rowGroup: u32) -> vec4f {
  let until = logDecays[work.length + k];
  let firstReadout = ((k * NUM_PROBES + probe) * ROW_GROUPS + rowGroup) * SLICES;
  var sum = readouts[firstReadout];
  for (var s = 1u; s < SLICES; s++) {
    sum += readouts[firstReadout + s];
  }
  sum *= exp(until);
  let firstDot = (k * NUM_PROBES + probe) * RING_ROWS;
  for (var j = 0u; j < numRows; j++) {
    let weight = exp(until - logDecays[j]) * dots[firstDot + j];
    if (j >= work.length) {
      let own = j - work.length;
      sum += newUs[own * ROW_GROUPS + rowGroup] * (weight * norms[own].x);
    } else {
      let place = placeOfRow(work.ringPage, work.ringPosition + j);
      sum += loadRingU(place, work.head, work.firstRow + rowGroup * TILE_ROWS) * weight;
    }
  }
  return sum;
}

// Puts what all row groups of a head, or all heads of a group, have in common behind the rows that the ring held. The first of them
// writes it.
fn appendShared(work: Work, lane: u32) {
  if (work.firstRow != 0u) {
    return;
  }
  for (var k = 0u; k < work.numTokens; k++) {
    let place = placeOfRow(work.ringPage, work.ringPosition + work.length + k);
    if (lane == 0u) {
      ringPages[place + RING_DECAYS + work.head] = bitcast<u32>(tokenGate(work.start + k, work.head).logDecay);
    }
    if (work.head % HEADS_PER_GROUP == 0u) {
      let firstKey = RING_KEYS + work.head / HEADS_PER_GROUP * STATE_SIZE;
      for (var column = lane * 4u; column < STATE_SIZE; column += WORKGROUP_SIZE * 4u) {
        let key = tokenKey(work.start + k, work.head, column) * norms[k].x;
        storeRing(place, firstKey + column, numColumnsFrom(column), key);
      }
    }
  }
}
