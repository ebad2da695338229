// Values are the first numbers of the keys.

fn loadValue(word: u32) -> vec4f {
  return loadKey(word);
}
