// RMS norms of rows, or of equal runs within them: values = norm(values) * weight, with a gate on what is normed, or as a term of
// a sum. One workgroup of 64 invocations per run.

struct Params {
  numTokens: u32,
  // Runs of a row, each normed by itself, and the values of one.
  numRuns: u32,
  runSize: u32,
  // From the weights of one run to those of the next: 0 where all have the same.
  weightStep: u32,
  valuesOffset: u32,
  valuesStride: u32,
  otherOffset: u32,
  otherStride: u32,
  eps: f32,
  scale: f32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> other: array<vec4f>;         // rows of [numRuns, runSize], read unless MODE_PLAIN
@group(0) @binding(2) var<storage, read> weight: array<vec4f>;        // [runSize], or [numRuns, runSize]
@group(0) @binding(3) var<storage, read_write> values: array<vec4f>;  // rows of [numRuns, runSize]

override MODE: u32;

// values = norm(values)
const MODE_PLAIN = 0u;
// values = norm(values * silu(other))
const MODE_GATED = 1u;
// values += scale * norm(other)
const MODE_ADDED = 2u;

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
  let work = group.y * numGroups.x + group.x;
  let token = work / params.numRuns;
  let run = work % params.numRuns;
  if (token >= params.numTokens) {
    return;
  }
  let quads = params.runSize / 4u;
  let row = (params.valuesOffset + token * params.valuesStride + run * params.runSize) / 4u;
  let otherRow = (params.otherOffset + token * params.otherStride + run * params.runSize) / 4u;
  let weightRow = run * params.weightStep / 4u;
  var square = 0.0;
  for (var quad = lane; quad < quads; quad += LANES) {
    var normed = vec4f();
    if (MODE == MODE_ADDED) {
      normed = other[otherRow + quad];
    } else if (MODE == MODE_GATED) {
      normed = values[row + quad] * silu(other[otherRow + quad]);
      values[row + quad] = normed;
    } else {
      normed = values[row + quad];
    }
    square += dot(normed, normed);
  }
  squares[lane] = square;
  workgroupBarrier();
  if (lane < 8u) {
    var sum = 0.0;
    for (var next = lane * 8u; next < lane * 8u + 8u; next++) {
      sum += squares[next];
    }
    eighths[lane] = sum;
  }
  workgroupBarrier();
  var total = 0.0;
  for (var next = 0u; next < 8u; next++) {
    total += eighths[next];
  }
  let scale = inverseSqrt(total / f32(params.runSize) + params.eps);
  for (var quad = lane; quad < quads; quad += LANES) {
    if (MODE == MODE_ADDED) {
      values[row + quad] += params.scale * (scale * weight[weightRow + quad] * other[otherRow + quad]);
    } else {
      values[row + quad] *= scale * weight[weightRow + quad];
    }
  }
}
