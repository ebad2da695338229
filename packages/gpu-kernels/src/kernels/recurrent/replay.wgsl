// A few tokens of each of many requests, without a write of the state: it stays the checkpoint that it was, and what the tokens did
// to it since goes to a ring, a row each. With E(j, t) the decay between rows j and t, the output of row t is
//   S(t) query = E(checkpoint, t) * S(checkpoint) query + sum over rows j <= t of E(j, t) * (key(j) . query) * u(j)
// so a ring of n rows costs n dot products and n scaled vectors, and not n updates of the state.
//
// Where the ring is to be settled, the state is brought past the rows that it held before this call and written to the target page.
// The rows of this call are not in it: they may still be taken back.
//
// One workgroup = ROW_GROUPS x 4 rows of one head of one request, laid out as in the scan. A ring row that is written here is never
// one that is read here, by whichever workgroup.

override ROW_GROUPS: u32;
// Tokens of a request in one call, at most.
override MAX_TOKENS: u32;

override WORKGROUP_SIZE = ROW_GROUPS * SLICES;
override ROW_TILES_PER_HEAD = (ROW_GROUPS_PER_HEAD + ROW_GROUPS - 1u) / ROW_GROUPS;
override VECTOR_QUADS = SLICES * 4u;
override NEW_KEY_QUADS = MAX_TOKENS * VECTOR_QUADS;
override NEW_U_QUADS = MAX_TOKENS * ROW_GROUPS;
override DOTS = RING_ROWS * SLICES;

// Logarithm of the decay from the checkpoint to behind each row. Rows of the ring first, then those of this call.
var<workgroup> logDecays: array<f32, RING_ROWS>;
var<workgroup> dots: array<f32, DOTS>;
var<workgroup> weights: array<f32, RING_ROWS>;
// The vector that the state is read with.
var<workgroup> probe: array<vec4f, VECTOR_QUADS>;
var<workgroup> newKeys: array<vec4f, NEW_KEY_QUADS>;
var<workgroup> newUs: array<vec4f, NEW_U_QUADS>;

// What a workgroup works on.
struct Work {
  head: u32,
  firstRow: u32,
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
  let ringPosition = position % RING_ROWS + RING_ROWS - length;
  let work = Work(head, firstRow, ringPage, ringPosition, length);
  let rowGroup = lane / SLICES;
  let slice = lane % SLICES;
  let row = firstRow + rowGroup * TILE_ROWS;
  let column = slice * TILE_COLUMNS;
  var tile = loadTile(sourcePage(request), head, row, column);

  for (var i = lane; i < numTokens * VECTOR_QUADS; i += WORKGROUP_SIZE) {
    newKeys[i] = tokenKey(start + i / VECTOR_QUADS, head, i % VECTOR_QUADS * 4u);
  }
  for (var j = lane; j < length + numTokens; j += WORKGROUP_SIZE) {
    if (j < length) {
      logDecays[j] = loadRingDecay(placeOfRow(ringPage, ringPosition + j), head);
    } else {
      logDecays[j] = tokenGate(start + j - length, head).logDecay;
    }
  }
  workgroupBarrier();
  if (lane == 0u) {
    for (var j = 1u; j < length + numTokens; j++) {
      logDecays[j] += logDecays[j - 1u];
    }
  }

  for (var k = 0u; k < numTokens; k++) {
    let value = tokenValue(start + k, head, row);
    let scale = tokenGate(start + k, head).scale;
    var u = value * scale;
    var queryNorm = 1.0;
    if (DELTA) {
      queryNorm = normalize(k, start + k, head, slice, lane);
      for (var i = lane; i < VECTOR_QUADS; i += WORKGROUP_SIZE) {
        probe[i] = newKeys[k * VECTOR_QUADS + i];
      }
      let remembered = readAt(work, tile, work.length + k, work.length + k, rowGroup, slice, lane);
      u = (value - remembered) * scale;
    }
    for (var i = lane; i < VECTOR_QUADS; i += WORKGROUP_SIZE) {
      probe[i] = tokenQuery(start + k, head, i * 4u);
    }
    if (slice == 0u) {
      newUs[k * ROW_GROUPS + rowGroup] = u;
    }
    let output = readAt(work, tile, work.length + k, work.length + k + 1u, rowGroup, slice, lane);
    if (slice == 0u) {
      if (DELTA) {
        storeY(start + k, head, row, output * queryNorm);
      } else {
        storeY(start + k, head, row, value * skipOf(head) + output);
      }
    }
  }

  if (settles) {
    for (var j = 0u; j < length; j++) {
      let place = placeOfRow(ringPage, ringPosition + j);
      let key = mat4x4f(
        loadRingKey(place, head, column),
        loadRingKey(place, head, column + 4u),
        loadRingKey(place, head, column + 8u),
        loadRingKey(place, head, column + 12u),
      );
      tile = advanced(tile, exp(loadRingDecay(place, head)), loadRingU(place, head, row), key);
    }
    storeTile(targetPage(request), head, row, column, tile);
  }
  if (hasRing) {
    append(work, start, numTokens, rowGroup, slice, lane);
  }
}

// Row `at` reads the state with `probe`: what the first `numRows` rows, `at` or one more, left in it. Called by all invocations
// together; each gets the 4 rows of its row group.
fn readAt(work: Work, tile: Tile, at: u32, numRows: u32, rowGroup: u32, slice: u32, lane: u32) -> vec4f {
  workgroupBarrier();
  for (var i = lane; i < numRows * SLICES; i += WORKGROUP_SIZE) {
    let j = i / SLICES;
    let firstQuad = i % SLICES * 4u;
    var sum = 0.0;
    for (var quad = firstQuad; quad < firstQuad + 4u; quad++) {
      sum += dot(keyQuadOf(work, j, quad), probe[quad]);
    }
    dots[i] = sum;
  }
  workgroupBarrier();
  for (var j = lane; j < numRows; j += WORKGROUP_SIZE) {
    var sum = dots[j * SLICES];
    for (var s = 1u; s < SLICES; s++) {
      sum += dots[j * SLICES + s];
    }
    weights[j] = exp(logDecays[at] - logDecays[j]) * sum;
  }
  workgroupBarrier();
  let own = mat4x4f(probe[slice * 4u], probe[slice * 4u + 1u], probe[slice * 4u + 2u], probe[slice * 4u + 3u]);
  var values = readout(tile, own) * exp(logDecays[at]);
  for (var j = slice; j < numRows; j += SLICES) {
    values += weights[j] * uOf(work, j, rowGroup);
  }
  let sum = sumOfSlices(values, lane);
  workgroupBarrier();
  return sum;
}

fn keyQuadOf(work: Work, j: u32, quad: u32) -> vec4f {
  if (j >= work.length) {
    return newKeys[(j - work.length) * VECTOR_QUADS + quad];
  }
  return loadRingKey(placeOfRow(work.ringPage, work.ringPosition + j), work.head, quad * 4u);
}

fn uOf(work: Work, j: u32, rowGroup: u32) -> vec4f {
  if (j >= work.length) {
    return newUs[(j - work.length) * ROW_GROUPS + rowGroup];
  }
  let place = placeOfRow(work.ringPage, work.ringPosition + j);
  return loadRingU(place, work.head, work.firstRow + rowGroup * TILE_ROWS);
}

// Brings the key of token k of the call to its length, and returns the factor of its query. Called by all invocations together.
fn normalize(k: u32, token: u32, head: u32, slice: u32, lane: u32) -> f32 {
  let first = k * VECTOR_QUADS + slice * 4u;
  let key = mat4x4f(newKeys[first], newKeys[first + 1u], newKeys[first + 2u], newKeys[first + 3u]);
  let query = querySlice(token, head, slice * TILE_COLUMNS);
  let squares = vec4f(dotOfSlices(key, key), dotOfSlices(query, query), 0.0, 0.0);
  let norms = normsOf(sumOfSlices(squares, lane).xy);
  workgroupBarrier();
  for (var i = lane; i < VECTOR_QUADS; i += WORKGROUP_SIZE) {
    newKeys[k * VECTOR_QUADS + i] *= norms.x;
  }
  workgroupBarrier();
  return norms.y;
}

// Puts the rows of this call behind those that the ring held. What several workgroups have, one of them writes.
fn append(work: Work, start: u32, numTokens: u32, rowGroup: u32, slice: u32, lane: u32) {
  let head = work.head;
  for (var k = 0u; k < numTokens; k++) {
    let place = placeOfRow(work.ringPage, work.ringPosition + work.length + k);
    let row = work.firstRow + rowGroup * TILE_ROWS;
    if (slice == 0u) {
      storeRing(place, head * HEAD_DIM + row, numRowsFrom(row), newUs[k * ROW_GROUPS + rowGroup]);
    }
    if (work.firstRow == 0u) {
      if (lane == 0u) {
        ringPages[place + RING_DECAYS + head] = bitcast<u32>(tokenGate(start + k, head).logDecay);
      }
      if (head % HEADS_PER_GROUP == 0u) {
        let firstKey = RING_KEYS + head / HEADS_PER_GROUP * STATE_SIZE;
        for (var i = lane; i < VECTOR_QUADS; i += WORKGROUP_SIZE) {
          storeRing(place, firstKey + 4u * i, numColumnsFrom(4u * i), newKeys[k * VECTOR_QUADS + i]);
        }
      }
    }
  }
}
