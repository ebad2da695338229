// Scatters rows into pages. `Unit` (numbers of a row), `Stored` (the same in a page) and `storedOf` stand in front of this text:
// see page-write.ts. Strides of rows count units, those of pages count stored units.

struct Params {
  numTokens: u32,
  tokensPerPage: u32,
  // Entries of `pageTable` for one request.
  tableStride: u32,
  rowUnits: u32,
  // From one row of `rows` to the next.
  rowStride: u32,
  // First unit of the first row in `rows`.
  rowsBase: u32,
  // From one row of a page to the next, and from one page of `pages` to the next.
  pageRowStride: u32,
  pageStride: u32,
  // First unit of page 0 in `pages`.
  pagesBase: u32,
}

// [.., rowStride], of which rowUnits from rowsBase on are written.
@group(0) @binding(0) var<storage, read> rows: array<Unit>;
// [numTokens, 2]: request, position.
@group(0) @binding(1) var<storage, read> tokens: array<i32>;
// [numRequests, tableStride]: page indices, -1 where there is no page.
@group(0) @binding(2) var<storage, read> pageTable: array<i32>;
@group(0) @binding(3) var<storage, read_write> pages: array<Stored>;
@group(0) @binding(4) var<uniform> params: Params;

const LANES = 64u;

// One workgroup writes one row; neighbouring lanes write neighbouring units.
@compute @workgroup_size(LANES)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let token = group.y * groups.x + group.x;
  if (token >= params.numTokens) {
    return;
  }
  let request = tokens[token * 2];
  let position = tokens[token * 2 + 1];
  if (request < 0 || position < 0) {
    return;
  }
  let column = u32(position) / params.tokensPerPage;
  let entry = u32(request) * params.tableStride + column;
  if (column >= params.tableStride || entry >= arrayLength(&pageTable)) {
    return;
  }
  let page = pageTable[entry];
  if (page < 0) {
    return;
  }
  let source = params.rowsBase + token * params.rowStride;
  let target_ = params.pagesBase + u32(page) * params.pageStride + (u32(position) % params.tokensPerPage) * params.pageRowStride;
  for (var unit = lane; unit < params.rowUnits; unit += LANES) {
    pages[target_ + unit] = storedOf(rows[source + unit]);
  }
}
