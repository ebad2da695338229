// Rotary positions, in place: turns the pair (i, i + halfDim) of every head by the token's angle number i.
// One invocation turns one pair.

struct Params {
  numTokens: u32,
  numHeads: u32,
  halfDim: u32,
  headsOffset: u32,
  headsStride: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> rotations: array<vec2f>;     // [numTokens, halfDim] of (cos, sin)
@group(0) @binding(2) var<storage, read_write> heads: array<f32>;     // rows of [numHeads, 2 halfDim]

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) numGroups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let work = (group.y * numGroups.x + group.x) * 64u + lane;
  let pair = work % params.halfDim;
  let head = work / params.halfDim % params.numHeads;
  let token = work / params.halfDim / params.numHeads;
  if (token >= params.numTokens) {
    return;
  }
  let at = params.headsOffset + token * params.headsStride + head * 2u * params.halfDim + pair;
  let rotation = rotations[token * params.halfDim + pair];
  let a = heads[at];
  let b = heads[at + params.halfDim];
  heads[at] = a * rotation.x - b * rotation.y;
  heads[at + params.halfDim] = b * rotation.x + a * rotation.y;
}
