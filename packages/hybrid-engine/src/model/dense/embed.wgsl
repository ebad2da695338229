// Embeddings of tokens, from the matrix that the logits are made with: token t's are its column. One invocation takes four
// values; they lie apart in the matrix, which costs less than a second copy of it laid out the other way.

struct Params {
  numTokens: u32,
  width: u32,
  columnQuads: u32,
  scale: f32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> tokens: array<u32>;          // [numTokens], each below the columns
@group(0) @binding(2) var<storage, read> embedding: array<vec2u>;     // [width, columns], columns in quads
@group(0) @binding(3) var<storage, read_write> output: array<vec4f>;  // [numTokens, width]

override EMBEDDING_IS_F16: u32;

fn load(row: u32, column: u32) -> f32 {
  let at = row * params.columnQuads + column / 4u;
  let half = column % 4u / 2u;
  if (EMBEDDING_IS_F16 != 0u) {
    return unpack2x16float(embedding[at][half])[column % 2u];
  }
  return bitcast<f32>(embedding[2u * at + half][column % 2u]);
}

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) numGroups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let work = (group.y * numGroups.x + group.x) * 64u + lane;
  let rowQuads = params.width / 4u;
  if (work >= params.numTokens * rowQuads) {
    return;
  }
  let column = tokens[work / rowQuads];
  let row = 4u * (work % rowQuads);
  let values = vec4f(load(row, column), load(row + 1u, column), load(row + 2u, column), load(row + 3u, column));
  output[work] = values * params.scale;
}
