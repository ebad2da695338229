// Keys and values as they are stored: f32, read four at a time. `word` counts 32-bit words from the start of the binding.

@group(0) @binding(1) var<storage, read> keyPool: array<vec4f>;
@group(0) @binding(2) var<storage, read> valuePool: array<vec4f>;

// Words of four stored numbers.
const WORDS_PER_VEC = 4u;

fn loadKey(word: u32) -> vec4f {
  return keyPool[word / WORDS_PER_VEC];
}

fn loadValue(word: u32) -> vec4f {
  return valuePool[word / WORDS_PER_VEC];
}
