// State pages whose stored numbers the device reads one by one: `Stored` is f32, or f16 where the device has it.
// `at` counts stored numbers from the start of the binding; `count` of 4 exist there.

fn loadStored(at: u32, count: u32) -> vec4f {
  if (!RAGGED) {
    return vec4f(f32(statePages[at]), f32(statePages[at + 1u]), f32(statePages[at + 2u]), f32(statePages[at + 3u]));
  }
  var values = vec4f();
  for (var i = 0u; i < count; i++) {
    values[i] = f32(statePages[at + i]);
  }
  return values;
}

fn storeStored(at: u32, count: u32, values: vec4f) {
  if (!RAGGED) {
    statePages[at] = Stored(values.x);
    statePages[at + 1u] = Stored(values.y);
    statePages[at + 2u] = Stored(values.z);
    statePages[at + 3u] = Stored(values.w);
    return;
  }
  for (var i = 0u; i < count; i++) {
    statePages[at + i] = Stored(values[i]);
  }
}
