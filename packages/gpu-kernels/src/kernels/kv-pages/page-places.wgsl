// Where the tokens of a request lie, in a pool whose pages are laid out as `Pages` says.

// A buffer's pages. Places and distances count 32-bit words.
struct Pages {
  // First entry of the table in its binding, and entries of one request.
  tableAt: u32,
  tableStride: u32,
  tokensPerPage: u32,
  // Page 0 in the pool, and from one page to the next.
  base: u32,
  pageStride: u32,
  // From one row of a page to the next.
  rowStride: u32,
  // Scales only: tokens that share a row, heads that share a number of it.
  tokensPerRow: u32,
  headsPerScale: u32,
}

// Entry of a token's page in the table, negative beyond its end.
fn entryOf(pages: Pages, request: u32, position: u32) -> i32 {
  let column = position / pages.tokensPerPage;
  return select(-1, i32(pages.tableAt + request * pages.tableStride + column), column < pages.tableStride);
}

// First word of a token's row in the pool.
fn rowOf(pages: Pages, page: i32, position: u32) -> u32 {
  return pages.base + u32(page) * pages.pageStride + position % pages.tokensPerPage * pages.rowStride;
}

// Word of the scale of a token's page and head.
fn scaleWordOf(scales: Pages, page: i32, position: u32, kvHead: u32) -> u32 {
  let row = position % scales.tokensPerPage / scales.tokensPerRow;
  return scales.base + u32(page) * scales.pageStride + row * scales.rowStride + kvHead / scales.headsPerScale;
}
