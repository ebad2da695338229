// What a token of a Mamba-2 layer brings, from rows [x | B | C] behind the convolution and step sizes `gates`:
//   dt = softplus(dt + dtBias);  h = exp(-exp(aLog) * dt) * h + dt * x (outer) B;  y = h C + dSkip * x

fn tokenGate(token: u32, head: u32) -> Gate {
  let dt = softplus(gates[params.gatesOffset + token * params.gatesStride + head] + headParams[params.headParamsOffset + head]);
  return Gate(-exp(headParams[params.headParamsOffset + NUM_HEADS + head]) * dt, dt);
}

fn skipOf(head: u32) -> f32 {
  return headParams[params.headParamsOffset + 2u * NUM_HEADS + head];
}

fn tokenValue(token: u32, head: u32, row: u32) -> vec4f {
  return loadTokens(placeOfToken(token) + head * HEAD_DIM + row, numRowsFrom(row));
}

fn tokenKey(token: u32, head: u32, column: u32) -> vec4f {
  let group = NUM_HEADS * HEAD_DIM + head / HEADS_PER_GROUP * STATE_SIZE;
  return loadTokens(placeOfToken(token) + group + column, numColumnsFrom(column));
}

fn tokenQuery(token: u32, head: u32, column: u32) -> vec4f {
  let group = NUM_HEADS * HEAD_DIM + (NUM_GROUPS + head / HEADS_PER_GROUP) * STATE_SIZE;
  return loadTokens(placeOfToken(token) + group + column, numColumnsFrom(column));
}

fn placeOfToken(token: u32) -> u32 {
  return params.tokensOffset + token * params.tokensStride;
}

// Keys and queries are taken as they are.
fn normsOf(squares: vec2f) -> vec2f {
  return vec2f(1.0);
}
