// How many keys the last query of a request may see where blocks are selected: all of as many blocks as may be.

fn numKeysOf(request: u32) -> u32 {
  return params.maxBlocks * params.tokensPerBlock;
}
