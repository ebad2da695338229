// Dense layer. Behind matmul-operands.
//
// One invocation makes TOKENS (1, 4 or 8) tokens x 4 columns in registers. With 8 tokens 12 loads serve 128 products.

@compute @workgroup_size(32, 2)
fn main(@builtin(global_invocation_id) id: vec3u) {
  let columnQuads = (params.outSize + 3u) / 4u;
  let columnQuad = id.x;
  let token = TOKENS * id.y;
  if (columnQuad >= columnQuads || token >= params.numTokens) {
    return;
  }
  let row0 = rowOf(token + 0u);
  let row1 = rowOf(token + 1u);
  let row2 = rowOf(token + 2u);
  let row3 = rowOf(token + 3u);
  let row4 = rowOf(token + 4u);
  let row5 = rowOf(token + 5u);
  let row6 = rowOf(token + 6u);
  let row7 = rowOf(token + 7u);
  var sum0 = vec4f();
  var sum1 = vec4f();
  var sum2 = vec4f();
  var sum3 = vec4f();
  var sum4 = vec4f();
  var sum5 = vec4f();
  var sum6 = vec4f();
  var sum7 = vec4f();
  var squares0 = vec4f();
  var squares4 = vec4f();
  for (var quad = 0u; quad < params.inSize / 4u; quad++) {
    let weights = loadWeights(quad, columnQuad, columnQuads);
    let x0 = input[row0 + quad];
    sum0 += weights * x0;
    squares0.x += squareOf(x0);
    if (TOKENS > 1u) {
      let x1 = input[row1 + quad];
      let x2 = input[row2 + quad];
      let x3 = input[row3 + quad];
      sum1 += weights * x1;
      sum2 += weights * x2;
      sum3 += weights * x3;
      squares0 += vec4f(0.0, squareOf(x1), squareOf(x2), squareOf(x3));
    }
    if (TOKENS > 4u) {
      let x4 = input[row4 + quad];
      let x5 = input[row5 + quad];
      let x6 = input[row6 + quad];
      let x7 = input[row7 + quad];
      sum4 += weights * x4;
      sum5 += weights * x5;
      sum6 += weights * x6;
      sum7 += weights * x7;
      squares4 += vec4f(squareOf(x4), squareOf(x5), squareOf(x6), squareOf(x7));
    }
  }
  finish(token, columnQuad, sum0, squares0.x);
  if (TOKENS > 1u) {
    finish(token + 1u, columnQuad, sum1, squares0.y);
    finish(token + 2u, columnQuad, sum2, squares0.z);
    finish(token + 3u, columnQuad, sum3, squares0.w);
  }
  if (TOKENS > 4u) {
    finish(token + 4u, columnQuad, sum4, squares4.x);
    finish(token + 5u, columnQuad, sum5, squares4.y);
    finish(token + 6u, columnQuad, sum6, squares4.z);
    finish(token + 7u, columnQuad, sum7, squares4.w);
  }
}

fn finish(token: u32, columnQuad: u32, sum: vec4f, sumOfSquares: f32) {
  store(token, columnQuad, (sum * normScale(sumOfSquares) + biasOf(columnQuad)) * params.scale);
}
