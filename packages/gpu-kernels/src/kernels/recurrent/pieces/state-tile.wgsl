// The state of a linear recurrence, shared by scan, step and replay. For every head it is a matrix S [HEAD_DIM, STATE_SIZE], and
// every token does
//   S = decay * S + u (outer) key;   output = S query
// What u, key, query and decay are is said by the family's own piece (mamba2-tokens.wgsl, gated-delta-tokens.wgsl).
//
// An invocation keeps a tile of 4 rows x 16 columns of one head's state in registers: every value of key and query that it reads
// serves 4 rows. All kernels do the same operations in the same order for every token, so a sequence gives the same result however
// it is cut into scans and steps.

override NUM_HEADS: u32;
override HEAD_DIM: u32;
override STATE_SIZE: u32;
override NUM_GROUPS: u32;

const TILE_ROWS = 4u;
const TILE_COLUMNS = 16u;

override ROW_GROUPS_PER_HEAD = (HEAD_DIM + TILE_ROWS - 1u) / TILE_ROWS;
override SLICES = (STATE_SIZE + TILE_COLUMNS - 1u) / TILE_COLUMNS;
override HEADS_PER_GROUP = NUM_HEADS / NUM_GROUPS;
// Rows and columns beyond the head's state are zero in registers and are never read from or written to memory.
override RAGGED = HEAD_DIM % TILE_ROWS != 0u || STATE_SIZE % TILE_COLUMNS != 0u;

// What a token does to a head besides its vectors: the logarithm of the decay, <= 0, and the factor of u.
struct Gate {
  logDecay: f32,
  scale: f32,
}

// Column c of `quad<i>` holds the 4 rows of state column 4 i + c.
struct Tile {
  quad0: mat4x4f,
  quad1: mat4x4f,
  quad2: mat4x4f,
  quad3: mat4x4f,
}

fn advanced(tile: Tile, decay: f32, u: vec4f, key: mat4x4f) -> Tile {
  return Tile(
    tile.quad0 * decay + outer(u, key[0]),
    tile.quad1 * decay + outer(u, key[1]),
    tile.quad2 * decay + outer(u, key[2]),
    tile.quad3 * decay + outer(u, key[3]),
  );
}

fn outer(rows: vec4f, columns: vec4f) -> mat4x4f {
  return mat4x4f(rows * columns.x, rows * columns.y, rows * columns.z, rows * columns.w);
}

// What the tile's 16 columns add to S query, for its 4 rows.
fn readout(tile: Tile, query: mat4x4f) -> vec4f {
  return tile.quad0 * query[0] + tile.quad1 * query[1] + tile.quad2 * query[2] + tile.quad3 * query[3];
}

fn dotOfSlices(a: mat4x4f, b: mat4x4f) -> f32 {
  return dot(a[0], b[0]) + dot(a[1], b[1]) + dot(a[2], b[2]) + dot(a[3], b[3]);
}

// log(1 + u) for u = exp(-|x|) in [0, 1] as 2 atanh(u / (2 + u)): the series ends below the rounding of f32, and unlike
// log(1.0 + u) it keeps every digit of a small step size.
fn softplus(x: f32) -> f32 {
  let u = exp(-abs(x));
  let s = u / (2.0 + u);
  let z = s * s;
  let series = 1.0 + z * (1.0 / 3.0 + z * (1.0 / 5.0 + z * (1.0 / 7.0 + z * (1.0 / 9.0 + z * (1.0 / 11.0 + z / 13.0)))));
  return max(x, 0.0) + 2.0 * s * series;
}

// How many of 4 rows from `row` on a head has, and how many of 4 columns from `column` on.
fn numRowsFrom(row: u32) -> u32 {
  return min(TILE_ROWS, HEAD_DIM - min(row, HEAD_DIM));
}

fn numColumnsFrom(column: u32) -> u32 {
  return min(4u, STATE_SIZE - min(column, STATE_SIZE));
}

// 4 values of a token's row, of which `count` exist. `at` is where the first lies.
fn loadTokens(at: u32, count: u32) -> vec4f {
  if (!RAGGED) {
    return vec4f(tokens[at], tokens[at + 1u], tokens[at + 2u], tokens[at + 3u]);
  }
  var values = vec4f();
  for (var i = 0u; i < count; i++) {
    values[i] = tokens[at + i];
  }
  return values;
}

fn keySlice(token: u32, head: u32, column: u32) -> mat4x4f {
  return mat4x4f(
    tokenKey(token, head, column),
    tokenKey(token, head, column + 4u),
    tokenKey(token, head, column + 8u),
    tokenKey(token, head, column + 12u),
  );
}

fn querySlice(token: u32, head: u32, column: u32) -> mat4x4f {
  return mat4x4f(
    tokenQuery(token, head, column),
    tokenQuery(token, head, column + 4u),
    tokenQuery(token, head, column + 8u),
    tokenQuery(token, head, column + 12u),
  );
}

fn storeY(token: u32, head: u32, row: u32, values: vec4f) {
  let at = params.yOffset + token * params.yStride + head * HEAD_DIM + row;
  if (!RAGGED) {
    y[at] = values.x;
    y[at + 1u] = values.y;
    y[at + 2u] = values.z;
    y[at + 3u] = values.w;
    return;
  }
  for (var i = 0u; i < numRowsFrom(row); i++) {
    y[at + i] = values[i];
  }
}

// The page that a request reads its state from, and the one that it leaves its state in.
fn sourcePage(request: u32) -> u32 {
  return tables[params.stateIndexOffset + request];
}

fn targetPage(request: u32) -> u32 {
  return tables[params.stateTargetOffset + request];
}

// Counted in stored numbers, as `stateBase` and `stateStride` are.
fn placeOfState(page: u32, head: u32, row: u32, column: u32) -> u32 {
  return params.stateBase + page * params.stateStride + (head * HEAD_DIM + row) * STATE_SIZE + column;
}

// A request without a page of the pool begins at zero. A negative index, read as u32, is beyond every pool.
fn loadTile(page: u32, head: u32, row: u32, column: u32) -> Tile {
  if (page >= params.numStatePages) {
    return Tile();
  }
  return Tile(
    loadState(page, head, row, column),
    loadState(page, head, row, column + 4u),
    loadState(page, head, row, column + 8u),
    loadState(page, head, row, column + 12u),
  );
}

// 4 rows x 4 columns, as the columns of a matrix.
fn loadState(page: u32, head: u32, row: u32, column: u32) -> mat4x4f {
  return transpose(mat4x4f(
    loadStateRow(page, head, row, column),
    loadStateRow(page, head, row + 1u, column),
    loadStateRow(page, head, row + 2u, column),
    loadStateRow(page, head, row + 3u, column),
  ));
}

fn loadStateRow(page: u32, head: u32, row: u32, column: u32) -> vec4f {
  return loadStored(placeOfState(page, head, row, column), select(0u, numColumnsFrom(column), row < HEAD_DIM));
}

fn storeTile(page: u32, head: u32, row: u32, column: u32, tile: Tile) {
  if (page < params.numStatePages) {
    storeState(page, head, row, column, tile.quad0);
    storeState(page, head, row, column + 4u, tile.quad1);
    storeState(page, head, row, column + 8u, tile.quad2);
    storeState(page, head, row, column + 12u, tile.quad3);
  }
}

fn storeState(page: u32, head: u32, row: u32, column: u32, values: mat4x4f) {
  let rows = transpose(values);
  for (var i = 0u; i < TILE_ROWS; i++) {
    let count = select(0u, numColumnsFrom(column), row + i < HEAD_DIM);
    storeStored(placeOfState(page, head, row + i, column), count, rows[i]);
  }
}
