// Operands of a dense layer, shared by its kernels, which put their entry points behind this:
//   output[t, o] = epilogue(sum_i norm(input)[t, i] * weight[i, o] + bias[o])
//
// A norm costs no pass of its own. A kernel reads every value of a token anyway, so it sums their squares on the way, takes the
// norm's weight into the matrix it multiplies by, and scales the finished sum by 1 / rms, which all outputs of a token share.
//
// An invocation adds up whole outputs by itself, from the first input to the last. So a token's outputs are the same, to the bit,
// whichever tokens come with it. Invocations side by side read the same inputs and neighbouring columns; nothing goes through
// workgroup memory, whose barriers cost a software device several times what they save.

struct Params {
  numTokens: u32,
  inSize: u32,
  outSize: u32,
  inputOffset: u32,
  inputStride: u32,
  outputOffset: u32,
  outputStride: u32,
  normEps: f32,
  // What the output is multiplied by before it is stored or added.
  scale: f32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> input: array<vec4f>;         // rows of [inSize]
@group(0) @binding(2) var<storage, read> normWeight: array<vec4f>;    // [inSize], read with INPUT_NORM
@group(0) @binding(3) var<storage, read> weight: array<vec2u>;        // [inSize, columns], columns in quads
@group(0) @binding(4) var<storage, read> bias: array<vec4f>;          // [columns], in quads, read with HAS_BIAS
@group(0) @binding(5) var<storage, read_write> output: array<f32>;    // rows of [outSize]

override INPUT_NORM: u32;
override HAS_BIAS: u32;
override EPILOGUE: u32;
override WEIGHT_IS_F16: u32;
// Tokens of one invocation.
override TOKENS: u32;

const EPILOGUE_ADD = 1u;
const EPILOGUE_GEGLU = 3u;

// Where a token's row begins in `input`, in quads of values. Beyond the last token: the last one's; the result is not stored.
fn rowOf(token: u32) -> u32 {
  return (params.inputOffset + min(token, params.numTokens - 1u) * params.inputStride) / 4u;
}

// 4 inputs x 4 columns: column i of the matrix holds the weights of input 4 quad + i. Its product with a quad of inputs is what
// they add to a quad of outputs.
fn loadWeights(quad: u32, columnQuad: u32, columnQuads: u32) -> mat4x4f {
  var scale = vec4f(1.0);
  if (INPUT_NORM != 0u) {
    scale = normWeight[quad];
  }
  let at = 4u * quad * columnQuads + columnQuad;
  return mat4x4f(
    scale.x * loadColumns(at),
    scale.y * loadColumns(at + columnQuads),
    scale.z * loadColumns(at + 2u * columnQuads),
    scale.w * loadColumns(at + 3u * columnQuads),
  );
}

fn loadColumns(at: u32) -> vec4f {
  if (WEIGHT_IS_F16 != 0u) {
    let packed = weight[at];
    return vec4f(unpack2x16float(packed.x), unpack2x16float(packed.y));
  }
  return bitcast<vec4f>(vec4u(weight[2u * at], weight[2u * at + 1u]));
}

fn squareOf(values: vec4f) -> f32 {
  if (INPUT_NORM != 0u) {
    return dot(values, values);
  }
  return 0.0;
}

fn normScale(sumOfSquares: f32) -> f32 {
  if (INPUT_NORM != 0u) {
    return inverseSqrt(sumOfSquares / f32(params.inSize) + params.normEps);
  }
  return 1.0;
}

fn biasOf(columnQuad: u32) -> vec4f {
  if (HAS_BIAS != 0u) {
    return bias[columnQuad];
  }
  return vec4f();
}

fn store(token: u32, columnQuad: u32, values: vec4f) {
  if (token >= params.numTokens) {
    return;
  }
  let at = params.outputOffset + token * params.outputStride + 4u * columnQuad;
  let numColumns = min(4u, params.outSize - 4u * columnQuad);
  for (var i = 0u; i < numColumns; i++) {
    if (EPILOGUE == EPILOGUE_ADD) {
      output[at + i] += values[i];
    } else {
      output[at + i] = values[i];
    }
  }
}
