// Where the tokens of a request lie. `indices` has every page table; `Pages` says where in it, and how pages are laid out.

// Page of a token, negative where there is none. Beyond the table there is none.
fn pageOf(pages: Pages, request: u32, position: u32) -> i32 {
  let column = position / pages.tokensPerPage;
  if (column >= pages.tableStride) {
    return -1;
  }
  return indices[pages.tableAt + request * pages.tableStride + column];
}

// First word of a token's row in the pool.
fn rowOf(pages: Pages, page: i32, position: u32) -> u32 {
  return pages.base + u32(page) * pages.pageStride + position % pages.tokensPerPage * pages.rowStride;
}

fn loadKey(word: u32) -> vec4f {
  return numbersOf(keyPool[word / WORDS_PER_VEC]);
}
