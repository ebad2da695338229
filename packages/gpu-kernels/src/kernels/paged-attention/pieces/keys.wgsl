// Keys. `word` counts 32-bit words from the start of the binding.

fn loadKey(word: u32) -> vec4f {
  return numbersOf(keyPool[word / WORDS_PER_VEC]);
}
