// Numbers of keys and values as they are stored, four at a time: f16, two in a word, for devices without shader-f16.

alias Stored = vec2u;

// 32-bit words of four numbers.
const WORDS_PER_VEC = 2u;

fn numbersOf(stored: Stored) -> vec4f {
  return vec4f(unpack2x16float(stored.x), unpack2x16float(stored.y));
}
