// Scan over the tokens of packed requests, one request after the other's tokens: the state of each starts from its page and goes
// back there after its last token. Completed by ssm-recurrence.wgsl.
//
// One workgroup = ROW_GROUPS x 4 rows of one head of one request, over all its tokens in order. The tokens' x, B, C and step sizes
// come in by chunks, loaded by all invocations together; the state stays in registers throughout. Invocation `lane` holds the tile
// of row group `lane % ROW_GROUPS` and slice `lane / ROW_GROUPS`.

struct Params {
  numRequests: u32,
  requestStartsOffset: u32,
  xBCOffset: u32,
  xBCStride: u32,
  dtOffset: u32,
  dtStride: u32,
  headParamsOffset: u32,
  stateIndexOffset: u32,
  stateBase: u32,
  stateStride: u32,
  numStatePages: u32,
  yOffset: u32,
  yStride: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> requestStarts: array<u32>;     // [numRequests + 1]
@group(0) @binding(2) var<storage, read> xBC: array<f32>;               // rows of [x | B | C]
@group(0) @binding(3) var<storage, read> dt: array<f32>;                // rows of [NUM_HEADS], before bias and softplus
@group(0) @binding(4) var<storage, read> headParams: array<f32>;        // [dtBias | aLog | dSkip], each [NUM_HEADS]
@group(0) @binding(5) var<storage, read> stateIndex: array<i32>;        // [numRequests]
@group(0) @binding(6) var<storage, read_write> statePages: array<f32>;  // pages of [NUM_HEADS, HEAD_DIM, STATE_SIZE]
@group(0) @binding(7) var<storage, read_write> y: array<f32>;           // rows of [NUM_HEADS, HEAD_DIM]

// Row groups of a workgroup, and tokens of a chunk.
override ROW_GROUPS: u32;
override CHUNK: u32;

override WORKGROUP_SIZE = ROW_GROUPS * SLICES;
override ROW_TILES_PER_HEAD = (ROW_GROUPS_PER_HEAD + ROW_GROUPS - 1u) / ROW_GROUPS;
override CHUNK_SLICES = CHUNK * SLICES;
override CHUNK_ROW_GROUPS = CHUNK * ROW_GROUPS;
override CHUNK_SUMS = select(1u, CHUNK * ROW_GROUPS * SLICES, SLICES > 1u);

var<workgroup> chunkB: array<mat4x4f, CHUNK_SLICES>;
var<workgroup> chunkC: array<mat4x4f, CHUNK_SLICES>;
var<workgroup> chunkX: array<vec4f, CHUNK_ROW_GROUPS>;
var<workgroup> chunkDt: array<f32, CHUNK>;
var<workgroup> chunkDecay: array<f32, CHUNK>;
// Read-outs of the slices of a row group, [CHUNK, SLICES, ROW_GROUPS]. Not used when there is one slice.
var<workgroup> sliceSums: array<vec4f, CHUNK_SUMS>;

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
  let start = requestStarts[params.requestStartsOffset + request];
  let end = requestStarts[params.requestStartsOffset + request + 1u];
  if (start >= end) {
    return;
  }
  let head = work / ROW_TILES_PER_HEAD % NUM_HEADS;
  let firstRow = work % ROW_TILES_PER_HEAD * ROW_GROUPS * TILE_ROWS;
  let rowGroup = lane % ROW_GROUPS;
  let slice = lane / ROW_GROUPS;
  let row = firstRow + rowGroup * TILE_ROWS;
  let column = slice * TILE_COLUMNS;
  let page = pageOf(request);
  let skip = skipOf(head);
  var tile = loadTile(page, head, row, column);

  for (var chunkStart = start; chunkStart < end; chunkStart += CHUNK) {
    let numTokens = min(CHUNK, end - chunkStart);
    workgroupBarrier();
    loadChunk(chunkStart, numTokens, head, firstRow, lane);
    workgroupBarrier();
    for (var k = 0u; k < numTokens; k++) {
      let x = chunkX[k * ROW_GROUPS + rowGroup];
      tile = advanced(tile, chunkDecay[k], x * chunkDt[k], chunkB[k * SLICES + slice]);
      let sum = readout(tile, chunkC[k * SLICES + slice]);
      if (SLICES == 1u) {
        storeY(chunkStart + k, head, row, x * skip + sum);
      } else {
        sliceSums[(k * SLICES + slice) * ROW_GROUPS + rowGroup] = sum;
      }
    }
    if (SLICES > 1u) {
      workgroupBarrier();
      for (var i = lane; i < numTokens * ROW_GROUPS; i += WORKGROUP_SIZE) {
        let k = i / ROW_GROUPS;
        var values = chunkX[i] * skip;
        for (var s = 0u; s < SLICES; s++) {
          values += sliceSums[(k * SLICES + s) * ROW_GROUPS + i % ROW_GROUPS];
        }
        storeY(chunkStart + k, head, firstRow + i % ROW_GROUPS * TILE_ROWS, values);
      }
    }
  }
  storeTile(page, head, row, column, tile);
}

fn loadChunk(firstToken: u32, numTokens: u32, head: u32, firstRow: u32, lane: u32) {
  let columnB = columnOfB(head);
  let columnC = columnB + NUM_GROUPS * STATE_SIZE;
  for (var i = lane; i < numTokens * SLICES * 4u; i += WORKGROUP_SIZE) {
    let token = firstToken + i / (SLICES * 4u);
    let column = i % (SLICES * 4u) * 4u;
    chunkB[i / 4u][i % 4u] = loadQuad(token, columnB, column);
    chunkC[i / 4u][i % 4u] = loadQuad(token, columnC, column);
  }
  for (var i = lane; i < numTokens * ROW_GROUPS; i += WORKGROUP_SIZE) {
    chunkX[i] = loadX(firstToken + i / ROW_GROUPS, head, firstRow + i % ROW_GROUPS * TILE_ROWS);
  }
  for (var k = lane; k < numTokens; k += WORKGROUP_SIZE) {
    let step = stepSize(dt[params.dtOffset + (firstToken + k) * params.dtStride + head], head);
    chunkDt[k] = step;
    chunkDecay[k] = decayOf(step, head);
  }
}
