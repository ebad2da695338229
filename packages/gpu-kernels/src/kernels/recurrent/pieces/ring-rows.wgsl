// Rows of a replay ring: what the tokens since the checkpoint did to the state. A row is
//   [u: NUM_HEADS * HEAD_DIM | key: NUM_GROUPS * STATE_SIZE | logDecay: NUM_HEADS]
// u and key in f32, or in f16 with two numbers in a word (RING_F16), logDecay always in f32.

override RING_ROWS: u32;

const NUMBERS_PER_WORD = select(1u, 2u, RING_F16);
override RING_KEYS = NUM_HEADS * HEAD_DIM;
override RING_DECAYS = (RING_KEYS + NUM_GROUPS * STATE_SIZE) / NUMBERS_PER_WORD;
override RING_ROW_WORDS = RING_DECAYS + NUM_HEADS;

// The first word of the row of the sequence's token `position`.
fn placeOfRow(page: u32, position: u32) -> u32 {
  return params.ringBase + page * params.ringStride + position % RING_ROWS * RING_ROW_WORDS;
}

// 4 numbers of a row from its number `at` on, of which `count` exist.
fn loadRing(row: u32, at: u32, count: u32) -> vec4f {
  var values = vec4f();
  if (RING_F16) {
    if (!RAGGED || count > 0u) {
      values = vec4f(unpack2x16float(ringPages[row + at / 2u]), 0.0, 0.0);
    }
    if (!RAGGED || count > 2u) {
      values = vec4f(values.xy, unpack2x16float(ringPages[row + at / 2u + 1u]));
    }
    return values;
  }
  let word = row + at;
  if (!RAGGED) {
    return bitcast<vec4f>(vec4u(ringPages[word], ringPages[word + 1u], ringPages[word + 2u], ringPages[word + 3u]));
  }
  for (var i = 0u; i < count; i++) {
    values[i] = bitcast<f32>(ringPages[word + i]);
  }
  return values;
}

fn storeRing(row: u32, at: u32, count: u32, values: vec4f) {
  if (RING_F16) {
    if (count > 0u) {
      ringPages[row + at / 2u] = pack2x16float(values.xy);
    }
    if (count > 2u) {
      ringPages[row + at / 2u + 1u] = pack2x16float(values.zw);
    }
    return;
  }
  for (var i = 0u; i < count; i++) {
    ringPages[row + at + i] = bitcast<u32>(values[i]);
  }
}

fn loadRingU(row: u32, head: u32, rowOfHead: u32) -> vec4f {
  return loadRing(row, head * HEAD_DIM + rowOfHead, numRowsFrom(rowOfHead));
}

fn loadRingKey(row: u32, head: u32, column: u32) -> vec4f {
  return loadRing(row, RING_KEYS + head / HEADS_PER_GROUP * STATE_SIZE + column, numColumnsFrom(column));
}

fn loadRingDecay(row: u32, head: u32) -> f32 {
  return bitcast<f32>(ringPages[row + RING_DECAYS + head]);
}
