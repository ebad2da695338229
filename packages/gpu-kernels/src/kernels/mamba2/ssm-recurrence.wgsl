// The recurrence of Mamba-2, shared by ssm-scan and ssm-step, which put their bindings and entry point before it:
//   dt = softplus(dt + dtBias);  h = exp(-exp(aLog) * dt) * h + dt * x (outer) B;  y = h C + dSkip * x
//
// An invocation keeps a tile of 4 rows x 16 columns of one head's state [HEAD_DIM, STATE_SIZE] in registers: every value of B and
// C that it reads serves 4 rows. Both kernels do the same operations in the same order for every token, so a sequence
// gives the same result however it is cut into scans and steps.

override NUM_HEADS: u32;
override HEAD_DIM: u32;
override STATE_SIZE: u32;
override NUM_GROUPS: u32;

const TILE_ROWS = 4u;
const TILE_COLUMNS = 16u;

override ROW_GROUPS_PER_HEAD = (HEAD_DIM + TILE_ROWS - 1u) / TILE_ROWS;
override SLICES = (STATE_SIZE + TILE_COLUMNS - 1u) / TILE_COLUMNS;
// Rows and columns beyond the head's state are zero in registers and are never read from or written to memory.
override RAGGED = HEAD_DIM % TILE_ROWS != 0u || STATE_SIZE % TILE_COLUMNS != 0u;

// Column c of `quads[i]` holds the 4 rows of state column 4 i + c.
struct Tile {
  quad0: mat4x4f,
  quad1: mat4x4f,
  quad2: mat4x4f,
  quad3: mat4x4f,
}

fn advanced(tile: Tile, decay: f32, dtX: vec4f, b: mat4x4f) -> Tile {
  return Tile(
    tile.quad0 * decay + outer(dtX, b[0]),
    tile.quad1 * decay + outer(dtX, b[1]),
    tile.quad2 * decay + outer(dtX, b[2]),
    tile.quad3 * decay + outer(dtX, b[3]),
  );
}

fn outer(rows: vec4f, columns: vec4f) -> mat4x4f {
  return mat4x4f(rows * columns.x, rows * columns.y, rows * columns.z, rows * columns.w);
}

// What the tile's 16 columns add to h C, for its 4 rows.
fn readout(tile: Tile, c: mat4x4f) -> vec4f {
  return tile.quad0 * c[0] + tile.quad1 * c[1] + tile.quad2 * c[2] + tile.quad3 * c[3];
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

fn stepSize(rawDt: f32, head: u32) -> f32 {
  return softplus(rawDt + headParams[params.headParamsOffset + head]);
}

// Between 0 and 1: the exponent is never positive.
fn decayOf(dt: f32, head: u32) -> f32 {
  return exp(-exp(headParams[params.headParamsOffset + NUM_HEADS + head]) * dt);
}

fn skipOf(head: u32) -> f32 {
  return headParams[params.headParamsOffset + 2u * NUM_HEADS + head];
}

// 4 rows of x of one token, from row `row` of the head.
fn loadX(token: u32, head: u32, row: u32) -> vec4f {
  let at = params.xBCOffset + token * params.xBCStride + head * HEAD_DIM + row;
  if (!RAGGED) {
    return vec4f(xBC[at], xBC[at + 1u], xBC[at + 2u], xBC[at + 3u]);
  }
  var x = vec4f();
  for (var i = 0u; i < min(TILE_ROWS, HEAD_DIM - min(row, HEAD_DIM)); i++) {
    x[i] = xBC[at + i];
  }
  return x;
}

// Words from the start of a token's row to B of a head's group; C of the group lies NUM_GROUPS * STATE_SIZE behind it.
fn columnOfB(head: u32) -> u32 {
  return NUM_HEADS * HEAD_DIM + head / (NUM_HEADS / NUM_GROUPS) * STATE_SIZE;
}

// 4 values of B or C of one token, from state column `column`. `wordInRow` is where the group's values begin.
fn loadQuad(token: u32, wordInRow: u32, column: u32) -> vec4f {
  let at = params.xBCOffset + token * params.xBCStride + wordInRow + column;
  if (!RAGGED) {
    return vec4f(xBC[at], xBC[at + 1u], xBC[at + 2u], xBC[at + 3u]);
  }
  var values = vec4f();
  for (var i = 0u; i < min(4u, STATE_SIZE - min(column, STATE_SIZE)); i++) {
    values[i] = xBC[at + i];
  }
  return values;
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
  for (var i = 0u; i < min(TILE_ROWS, HEAD_DIM - min(row, HEAD_DIM)); i++) {
    y[at + i] = values[i];
  }
}

fn pageOf(request: u32) -> u32 {
  return u32(stateIndex[params.stateIndexOffset + request]);
}

fn wordOfState(page: u32, head: u32, row: u32, column: u32) -> u32 {
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
  let at = wordOfState(page, head, row, column);
  if (!RAGGED) {
    return vec4f(statePages[at], statePages[at + 1u], statePages[at + 2u], statePages[at + 3u]);
  }
  var values = vec4f();
  for (var i = 0u; i < numColumnsFrom(row, column); i++) {
    values[i] = statePages[at + i];
  }
  return values;
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
  storeStateRow(page, head, row, column, rows[0]);
  storeStateRow(page, head, row + 1u, column, rows[1]);
  storeStateRow(page, head, row + 2u, column, rows[2]);
  storeStateRow(page, head, row + 3u, column, rows[3]);
}

fn storeStateRow(page: u32, head: u32, row: u32, column: u32, values: vec4f) {
  let at = wordOfState(page, head, row, column);
  if (!RAGGED) {
    statePages[at] = values.x;
    statePages[at + 1u] = values.y;
    statePages[at + 2u] = values.z;
    statePages[at + 3u] = values.w;
    return;
  }
  for (var i = 0u; i < numColumnsFrom(row, column); i++) {
    statePages[at + i] = values[i];
  }
}

// How many of 4 columns from `column` on belong to the state, in row `row`.
fn numColumnsFrom(row: u32, column: u32) -> u32 {
  return select(0u, min(4u, STATE_SIZE - min(column, STATE_SIZE)), row < HEAD_DIM);
}
