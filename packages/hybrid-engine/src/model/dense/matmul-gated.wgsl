// Dense layer whose output is activation(gate) * up. Behind matmul-operands.
//
// The weight's columns come in pairs of quads: four of the gate, then the same four of up. One invocation makes both quads of
// TOKENS (1 or 4) tokens, so that the two sides of a product meet in its registers.

@compute @workgroup_size(32, 2)
fn main(@builtin(global_invocation_id) id: vec3u) {
  let outQuads = params.outSize / 4u;
  let outQuad = id.x;
  let token = TOKENS * id.y;
  if (outQuad >= outQuads || token >= params.numTokens) {
    return;
  }
  let row0 = rowOf(token + 0u);
  let row1 = rowOf(token + 1u);
  let row2 = rowOf(token + 2u);
  let row3 = rowOf(token + 3u);
  var gate0 = vec4f();
  var gate1 = vec4f();
  var gate2 = vec4f();
  var gate3 = vec4f();
  var up0 = vec4f();
  var up1 = vec4f();
  var up2 = vec4f();
  var up3 = vec4f();
  var squares = vec4f();
  for (var quad = 0u; quad < params.inSize / 4u; quad++) {
    let gateWeights = loadWeights(quad, 2u * outQuad, 2u * outQuads);
    let upWeights = loadWeights(quad, 2u * outQuad + 1u, 2u * outQuads);
    let x0 = input[row0 + quad];
    gate0 += gateWeights * x0;
    up0 += upWeights * x0;
    squares.x += squareOf(x0);
    if (TOKENS > 1u) {
      let x1 = input[row1 + quad];
      let x2 = input[row2 + quad];
      let x3 = input[row3 + quad];
      gate1 += gateWeights * x1;
      gate2 += gateWeights * x2;
      gate3 += gateWeights * x3;
      up1 += upWeights * x1;
      up2 += upWeights * x2;
      up3 += upWeights * x3;
      squares += vec4f(0.0, squareOf(x1), squareOf(x2), squareOf(x3));
    }
  }
  storeProduct(token, outQuad, gate0, up0, squares.x);
  if (TOKENS > 1u) {
    storeProduct(token + 1u, outQuad, gate1, up1, squares.y);
    storeProduct(token + 2u, outQuad, gate2, up2, squares.z);
    storeProduct(token + 3u, outQuad, gate3, up3, squares.w);
  }
}

fn storeProduct(token: u32, outQuad: u32, gate: vec4f, up: vec4f, sumOfSquares: f32) {
  let scale = normScale(sumOfSquares);
  let activated = activation(gate * scale + biasOf(2u * outQuad));
  store(token, outQuad, activated * (up * scale + biasOf(2u * outQuad + 1u)) * params.scale);
}

// SiLU, or GELU by its tanh approximation: 0.5 (1 + tanh(u)) is the logistic function of 2 u. The exponent is kept below the
// overflow of f32; beyond it the result is 0 to every digit.
fn activation(x: vec4f) -> vec4f {
  var slope = x;
  if (EPILOGUE == EPILOGUE_GEGLU) {
    slope = 1.5957691216 * (x + 0.044715 * x * x * x);
  }
  return x / (1.0 + exp(-max(slope, vec4f(-80.0))));
}
