// What a token of a gated delta net brings, from rows [q | k | v] behind the convolution, and from its decay and write gates:
//   S = exp(-exp(aLog) * softplus(a + dtBias)) * S;  u = sigmoid(b) * (v - S k);  S = S + u (outer) k;  y = S q * queryScale
// with q and k brought to length 1 where NORMALIZE is set.

fn tokenGate(token: u32, head: u32) -> Gate {
  let dt = softplus(gates[params.gatesOffset + token * params.gatesStride + head] + headParams[params.headParamsOffset + head]);
  let write = writeGates[params.writeGatesOffset + token * params.writeGatesStride + head];
  // The exponent is kept below the overflow of f32; beyond it the result is 0 to every digit.
  return Gate(-exp(headParams[params.headParamsOffset + NUM_HEADS + head]) * dt, 1.0 / (1.0 + exp(-max(write, -80.0))));
}

fn skipOf(head: u32) -> f32 {
  return 0.0;
}

fn tokenQuery(token: u32, head: u32, column: u32) -> vec4f {
  return loadTokens(placeOfToken(token) + head / HEADS_PER_GROUP * STATE_SIZE + column, numColumnsFrom(column));
}

fn tokenKey(token: u32, head: u32, column: u32) -> vec4f {
  let group = (NUM_GROUPS + head / HEADS_PER_GROUP) * STATE_SIZE;
  return loadTokens(placeOfToken(token) + group + column, numColumnsFrom(column));
}

fn tokenValue(token: u32, head: u32, row: u32) -> vec4f {
  return loadTokens(placeOfToken(token) + 2u * NUM_GROUPS * STATE_SIZE + head * HEAD_DIM + row, numRowsFrom(row));
}

fn placeOfToken(token: u32) -> u32 {
  return params.tokensOffset + token * params.tokensStride;
}

// Factors of key and query, from the sums of their squares.
fn normsOf(squares: vec2f) -> vec2f {
  let scale = vec2f(1.0, params.queryScale);
  if (NORMALIZE) {
    return inverseSqrt(squares + 1e-6) * scale;
  }
  return scale;
}
