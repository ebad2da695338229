// Numbers of keys and values as they are stored, four at a time: int8, in units of the scale of their page.

alias Stored = u32;

// 32-bit words of four numbers.
const WORDS_PER_VEC = 1u;

fn numbersOf(stored: Stored) -> vec4f {
  return vec4f((vec4i(bitcast<i32>(stored)) << vec4u(24u, 16u, 8u, 0u)) >> vec4u(24u));
}
