// State pages of f16 on any device: two numbers in a word. `at` counts numbers from the start of the binding and is even, and so is
// `count`, the numbers of 4 that exist there: no word is shared by two invocations.

fn loadStored(at: u32, count: u32) -> vec4f {
  var values = vec4f();
  if (!RAGGED || count > 0u) {
    values = vec4f(unpack2x16float(statePages[at / 2u]), 0.0, 0.0);
  }
  if (!RAGGED || count > 2u) {
    values = vec4f(values.xy, unpack2x16float(statePages[at / 2u + 1u]));
  }
  return values;
}

fn storeStored(at: u32, count: u32, values: vec4f) {
  if (!RAGGED || count > 0u) {
    statePages[at / 2u] = pack2x16float(values.xy);
  }
  if (!RAGGED || count > 2u) {
    statePages[at / 2u + 1u] = pack2x16float(values.zw);
  }
}
