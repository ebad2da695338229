// One token of each of many requests: the scan for a single token, without its staging.
//
// Invocation `lane` of a workgroup holds slice `lane % SLICES` of one row group; row groups are counted through all heads of
// a request, so that small heads share a workgroup.

const MAX_WORKGROUP_SIZE = 64u;

override ROW_GROUPS_PER_WORKGROUP = MAX_WORKGROUP_SIZE / SLICES;
override WORKGROUP_SIZE = ROW_GROUPS_PER_WORKGROUP * SLICES;
override WORKGROUPS_PER_REQUEST = (NUM_HEADS * ROW_GROUPS_PER_HEAD + ROW_GROUPS_PER_WORKGROUP - 1u) / ROW_GROUPS_PER_WORKGROUP;

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
  let slice = lane % SLICES;
  let rowGroup = work % WORKGROUPS_PER_REQUEST * ROW_GROUPS_PER_WORKGROUP + lane / SLICES;
  // Surplus invocations repeat the last row group and keep nothing: all of them meet at the barriers.
  let surplus = rowGroup >= NUM_HEADS * ROW_GROUPS_PER_HEAD;
  let ownGroup = min(rowGroup, NUM_HEADS * ROW_GROUPS_PER_HEAD - 1u);
  let head = ownGroup / ROW_GROUPS_PER_HEAD;
  let row = ownGroup % ROW_GROUPS_PER_HEAD * TILE_ROWS;
  let column = slice * TILE_COLUMNS;

  let before = loadTile(sourcePage(request), head, row, column);
  let value = tokenValue(request, head, row);
  let key = keySlice(request, head, column);
  let query = querySlice(request, head, column);
  let gate = tokenGate(request, head);
  let decay = exp(gate.logDecay);
  var u: vec4f;
  var norms = vec2f();
  if (DELTA) {
    let squares = vec4f(dotOfSlices(key, key), dotOfSlices(query, query), 0.0, 0.0);
    norms = normsOf(sumOfSlices(squares, lane).xy);
    let remembered = sumOfSlices(readout(before, key), lane) * (norms.x * decay);
    u = (value - remembered) * (gate.scale * norms.x);
  } else {
    u = value * gate.scale;
  }
  let tile = advanced(before, decay, u, key);
  let total = sumOfSlices(readout(tile, query), lane);
  if (surplus) {
    return;
  }
  storeTile(targetPage(request), head, row, column, tile);
  if (slice == 0u) {
    if (DELTA) {
      storeY(request, head, row, total * norms.y);
    } else {
      storeY(request, head, row, value * skipOf(head) + total);
    }
  }
}
