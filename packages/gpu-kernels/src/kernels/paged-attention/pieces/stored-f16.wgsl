// Numbers of keys and values as they are stored, four at a time: f16, read as such.

alias Stored = vec4<f16>;

// 32-bit words of four numbers.
const WORDS_PER_VEC = 2u;

fn numbersOf(stored: Stored) -> vec4f {
  return vec4f(stored);
}
