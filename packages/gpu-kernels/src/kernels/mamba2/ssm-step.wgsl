// One token of each of many requests: ssm-scan for a single token, without its staging. Completed by ssm-recurrence.wgsl.
//
// Invocation `lane` of a workgroup holds slice `lane % SLICES` of one row group; row groups are counted through all heads of
// a request, so that small heads share a workgroup.

struct Params {
  numRequests: u32,
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
@group(0) @binding(1) var<storage, read> xBC: array<f32>;               // [numRequests] rows of [x | B | C]
@group(0) @binding(2) var<storage, read> dt: array<f32>;                // [numRequests] rows of [NUM_HEADS], before bias and softplus
@group(0) @binding(3) var<storage, read> headParams: array<f32>;        // [dtBias | aLog | dSkip], each [NUM_HEADS]
@group(0) @binding(4) var<storage, read> stateIndex: array<i32>;        // [numRequests]
@group(0) @binding(5) var<storage, read_write> statePages: array<f32>;  // pages of [NUM_HEADS, HEAD_DIM, STATE_SIZE]
@group(0) @binding(6) var<storage, read_write> y: array<f32>;           // [numRequests] rows of [NUM_HEADS, HEAD_DIM]

const MAX_WORKGROUP_SIZE = 64u;

override ROW_GROUPS_PER_WORKGROUP = MAX_WORKGROUP_SIZE / SLICES;
override WORKGROUP_SIZE = ROW_GROUPS_PER_WORKGROUP * SLICES;
override WORKGROUPS_PER_REQUEST = (NUM_HEADS * ROW_GROUPS_PER_HEAD + ROW_GROUPS_PER_WORKGROUP - 1u) / ROW_GROUPS_PER_WORKGROUP;

// Read-outs, one of each invocation.
var<workgroup> sliceSums: array<vec4f, MAX_WORKGROUP_SIZE>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn main(
  @builtin(workgroup_id) workgroup: vec3u,
  @builtin(num_workgroups) numWorkgroups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let work = workgroup.y * numWorkgroups.x + workgroup.x;
  let request = work / WORKGROUPS_PER_REQUEST;
  if (request >= params.numRequests) {
    return;
  }
  let rowGroup = work % WORKGROUPS_PER_REQUEST * ROW_GROUPS_PER_WORKGROUP + lane / SLICES;
  let slice = lane % SLICES;
  let head = rowGroup / ROW_GROUPS_PER_HEAD;
  let row = rowGroup % ROW_GROUPS_PER_HEAD * TILE_ROWS;
  let column = slice * TILE_COLUMNS;
  let surplus = head >= NUM_HEADS;
  var x = vec4f();
  if (!surplus) {
    let page = pageOf(request);
    let step = stepSize(dt[params.dtOffset + request * params.dtStride + head], head);
    x = loadX(request, head, row);
    let columnB = columnOfB(head);
    let columnC = columnB + NUM_GROUPS * STATE_SIZE;
    let tile = advanced(loadTile(page, head, row, column), decayOf(step, head), x * step, loadSlice(request, columnB, column));
    storeTile(page, head, row, column, tile);
    let sum = readout(tile, loadSlice(request, columnC, column));
    if (SLICES == 1u) {
      storeY(request, head, row, x * skipOf(head) + sum);
    } else {
      sliceSums[lane] = sum;
    }
  }
  if (SLICES > 1u) {
    workgroupBarrier();
    if (!surplus && slice == 0u) {
      var values = x * skipOf(head);
      for (var s = 0u; s < SLICES; s++) {
        values += sliceSums[lane + s];
      }
      storeY(request, head, row, values);
    }
  }
}

fn loadSlice(token: u32, wordInRow: u32, column: u32) -> mat4x4f {
  return mat4x4f(
    loadQuad(token, wordInRow, column),
    loadQuad(token, wordInRow, column + 4u),
    loadQuad(token, wordInRow, column + 8u),
    loadQuad(token, wordInRow, column + 12u),
  );
}
