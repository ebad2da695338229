// Rotary positions, in place: turns pair i of every head by the token's angle number i. The pair is (i, i + pairGap) with a
// pairStep of 1, (2i, 2i + 1) with a pairStep of 2 and a pairGap of 1. What is behind the pairs of a head stays as it is.
// One invocation turns one pair.

struct Params {
  numTokens: u32,
  numHeads: u32,
  headDim: u32,
  numPairs: u32,
  pairStep: u32,
  pairGap: u32,
  headsOffset: u32,
  headsStride: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> rotations: array<vec2f>;     // [numTokens, numPairs] of (cos, sin)
@group(0) @binding(2) var<storage, read_write> heads: array<f32>;     // rows of [numHeads, headDim]

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) numGroups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let work = (group.y * numGroups.x + group.x) * 64u + lane;
  let pair = work % params.numPairs;
  let head = work / params.numPairs % params.numHeads;
  let token = work / params.numPairs / params.numHeads;
  if (token >= params.numTokens) {
    return;
  }
  let at = params.headsOffset + token * params.headsStride + head * params.headDim + pair * params.pairStep;
  let rotation = rotations[token * params.numPairs + pair];
  let a = heads[at];
  let b = heads[at + params.pairGap];
  heads[at] = a * rotation.x - b * rotation.y;
  heads[at + params.pairGap] = b * rotation.x + a * rotation.y;
}
