// Copies chosen rows of activations side by side: the tokens whose logits are wanted. One invocation copies four values.

struct Params {
  numRows: u32,
  rowSize: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> rows: array<u32>;            // [numRows]
@group(0) @binding(2) var<storage, read> source: array<vec4f>;        // rows of [rowSize]
@group(0) @binding(3) var<storage, read_write> output: array<vec4f>;  // [numRows, rowSize]

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) numGroups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let work = (group.y * numGroups.x + group.x) * 64u + lane;
  let rowQuads = params.rowSize / 4u;
  if (work < params.numRows * rowQuads) {
    output[work] = source[rows[work / rowQuads] * rowQuads + work % rowQuads];
  }
}
