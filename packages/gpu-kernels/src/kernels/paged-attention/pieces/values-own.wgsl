// Values lie in a pool of their own. `word` counts 32-bit words from the start of the binding.

fn loadValue(word: u32) -> vec4f {
  return numbersOf(valuePool[word / WORDS_PER_VEC]);
}
