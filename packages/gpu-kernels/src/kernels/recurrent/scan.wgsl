// Scan over the tokens of packed requests, each on a chunk grid of its own: the state of each starts from its page and goes to its
// target page after its last token, and to snapshot pages after the tokens that they name.
//
// One workgroup = ROW_GROUPS x 4 rows of one head of one request, over all its tokens in order. What the tokens bring is loaded by
// chunks, by all invocations together; the state stays in registers throughout. Invocation `lane` holds the tile of row group
// `lane / SLICES` and slice `lane % SLICES`.

// Row groups of a workgroup, and tokens of a chunk.
override ROW_GROUPS: u32;
override CHUNK: u32;

override WORKGROUP_SIZE = ROW_GROUPS * SLICES;
override ROW_TILES_PER_HEAD = (ROW_GROUPS_PER_HEAD + ROW_GROUPS - 1u) / ROW_GROUPS;
override CHUNK_SLICES = CHUNK * SLICES;
override CHUNK_ROW_GROUPS = CHUNK * ROW_GROUPS;
// Outputs are summed over slices at the end of a chunk, unless a subgroup does it at once.
override LATE_SUMS = SLICES > 1u && !SUBGROUPS;
override CHUNK_SUMS = select(1u, CHUNK * ROW_GROUPS * SLICES, LATE_SUMS);

var<workgroup> chunkKeys: array<mat4x4f, CHUNK_SLICES>;
var<workgroup> chunkQueries: array<mat4x4f, CHUNK_SLICES>;
var<workgroup> chunkValues: array<vec4f, CHUNK_ROW_GROUPS>;
var<workgroup> chunkScales: array<f32, CHUNK>;
var<workgroup> chunkDecays: array<f32, CHUNK>;
// 1 / length of key and query of each token. Used by the delta rule only.
var<workgroup> chunkNorms: array<vec2f, CHUNK>;
// Read-outs, [CHUNK, ROW_GROUPS, SLICES].
var<workgroup> chunkSums: array<vec4f, CHUNK_SUMS>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn main(
  @builtin(workgroup_id) workgroup: vec3u,
  @builtin(num_workgroups) numWorkgroups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let work = workgroup.y * numWorkgroups.x + workgroup.x;
  let request = work / (NUM_HEADS * ROW_TILES_PER_HEAD);
  if (request >= params.numRequests) {
    return;
  }
  let start = tables[params.startsOffset + request];
  let end = tables[params.startsOffset + request + 1u];
  if (start >= end) {
    return;
  }
  let head = work / ROW_TILES_PER_HEAD % NUM_HEADS;
  let firstRow = work % ROW_TILES_PER_HEAD * ROW_GROUPS * TILE_ROWS;
  let rowGroup = lane / SLICES;
  let slice = lane % SLICES;
  let row = firstRow + rowGroup * TILE_ROWS;
  let column = slice * TILE_COLUMNS;
  var tile = loadTile(sourcePage(request), head, row, column);
  var snapshots = snapshotsOf(request);

  for (var chunkStart = start; chunkStart < end; chunkStart += CHUNK) {
    let numTokens = min(CHUNK, end - chunkStart);
    workgroupBarrier();
    loadChunk(chunkStart, numTokens, head, firstRow, lane);
    workgroupBarrier();
    if (DELTA) {
      measureChunk(numTokens, rowGroup, slice, lane);
    }
    for (var k = 0u; k < numTokens; k++) {
      let value = chunkValues[k * ROW_GROUPS + rowGroup];
      let key = chunkKeys[k * SLICES + slice];
      let decay = chunkDecays[k];
      var u: vec4f;
      if (DELTA) {
        let norm = chunkNorms[k].x;
        let remembered = sumOfSlices(readout(tile, key), lane) * (norm * decay);
        u = (value - remembered) * (chunkScales[k] * norm);
      } else {
        u = value * chunkScales[k];
      }
      tile = advanced(tile, decay, u, key);
      let sum = readout(tile, chunkQueries[k * SLICES + slice]);
      if (LATE_SUMS) {
        chunkSums[k * WORKGROUP_SIZE + lane] = sum;
      } else {
        let total = sumOfSlices(sum, lane);
        if (slice == 0u) {
          storeY(chunkStart + k, head, row, outputOf(total, k, value, head));
        }
      }
      while (snapshots.position == chunkStart - start + k + 1u) {
        storeTile(snapshots.page, head, row, column, tile);
        snapshots = following(snapshots);
      }
    }
    if (LATE_SUMS) {
      workgroupBarrier();
      for (var i = lane; i < numTokens * ROW_GROUPS; i += WORKGROUP_SIZE) {
        var total = chunkSums[i * SLICES];
        for (var s = 1u; s < SLICES; s++) {
          total += chunkSums[i * SLICES + s];
        }
        let k = i / ROW_GROUPS;
        storeY(chunkStart + k, head, firstRow + i % ROW_GROUPS * TILE_ROWS, outputOf(total, k, chunkValues[i], head));
      }
    }
  }
  storeTile(targetPage(request), head, row, column, tile);
}

fn outputOf(total: vec4f, k: u32, value: vec4f, head: u32) -> vec4f {
  if (DELTA) {
    return total * chunkNorms[k].y;
  }
  return value * skipOf(head) + total;
}

fn loadChunk(firstToken: u32, numTokens: u32, head: u32, firstRow: u32, lane: u32) {
  for (var i = lane; i < numTokens * SLICES * 4u; i += WORKGROUP_SIZE) {
    let token = firstToken + i / (SLICES * 4u);
    let column = i % (SLICES * 4u) * 4u;
    chunkKeys[i / 4u][i % 4u] = tokenKey(token, head, column);
    chunkQueries[i / 4u][i % 4u] = tokenQuery(token, head, column);
  }
  for (var i = lane; i < numTokens * ROW_GROUPS; i += WORKGROUP_SIZE) {
    chunkValues[i] = tokenValue(firstToken + i / ROW_GROUPS, head, firstRow + i % ROW_GROUPS * TILE_ROWS);
  }
  for (var k = lane; k < numTokens; k += WORKGROUP_SIZE) {
    let gate = tokenGate(firstToken + k, head);
    chunkScales[k] = gate.scale;
    chunkDecays[k] = exp(gate.logDecay);
  }
}

// Each row group takes every ROW_GROUPS-th token; all invocations go round equally often.
fn measureChunk(numTokens: u32, rowGroup: u32, slice: u32, lane: u32) {
  for (var first = 0u; first < numTokens; first += ROW_GROUPS) {
    let k = first + rowGroup;
    var squares = vec2f();
    if (k < numTokens) {
      let key = chunkKeys[k * SLICES + slice];
      let query = chunkQueries[k * SLICES + slice];
      squares = vec2f(dotOfSlices(key, key), dotOfSlices(query, query));
    }
    let norms = normsOf(sumOfSlices(vec4f(squares, 0.0, 0.0), lane).xy);
    if (slice == 0u && k < numTokens) {
      chunkNorms[k] = norms;
    }
  }
  workgroupBarrier();
}
