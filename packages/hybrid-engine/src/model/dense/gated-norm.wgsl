// RMS norm of a gated row, in place: values = norm(values * silu(gate)) * weight.
// One workgroup of 64 invocations per token.

struct Params {
  numTokens: u32,
  rowSize: u32,
  valuesOffset: u32,
  valuesStride: u32,
  gateOffset: u32,
  gateStride: u32,
  eps: f32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> gate: array<vec4f>;          // rows of [rowSize]
@group(0) @binding(2) var<storage, read> weight: array<vec4f>;        // [rowSize]
@group(0) @binding(3) var<storage, read_write> values: array<vec4f>;  // rows of [rowSize]

const LANES = 64u;

var<workgroup> squares: array<f32, LANES>;
var<workgroup> eighths: array<f32, 8>;

// The exponent is kept below the overflow of f32; beyond it the result is 0 to every digit.
fn silu(x: vec4f) -> vec4f {
  return x / (1.0 + exp(-max(x, vec4f(-80.0))));
}

@compute @workgroup_size(LANES)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) numGroups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let token = group.y * numGroups.x + group.x;
  if (token >= params.numTokens) {
    return;
  }
  let quads = params.rowSize / 4u;
  let row = (params.valuesOffset + token * params.valuesStride) / 4u;
  let gateRow = (params.gateOffset + token * params.gateStride) / 4u;
  var square = 0.0;
  for (var quad = lane; quad < quads; quad += LANES) {
    let gated = values[row + quad] * silu(gate[gateRow + quad]);
    values[row + quad] = gated;
    square += dot(gated, gated);
  }
  squares[lane] = square;
  workgroupBarrier();
  if (lane < 8u) {
    var sum = 0.0;
    for (var other = lane * 8u; other < lane * 8u + 8u; other++) {
      sum += squares[other];
    }
    eighths[lane] = sum;
  }
  workgroupBarrier();
  var total = 0.0;
  for (var other = 0u; other < 8u; other++) {
    total += eighths[other];
  }
  let scale = inverseSqrt(total / f32(params.rowSize) + params.eps);
  for (var quad = lane; quad < quads; quad += LANES) {
    values[row + quad] *= scale * weight[quad];
  }
}
