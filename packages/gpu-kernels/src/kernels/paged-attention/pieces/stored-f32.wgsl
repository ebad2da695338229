// Numbers of keys and values as they are stored, four at a time: f32.

alias Stored = vec4f;

// 32-bit words of four numbers.
const WORDS_PER_VEC = 4u;

fn numbersOf(stored: Stored) -> vec4f {
  return stored;
}
