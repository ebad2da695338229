// Which keys are looked at: those of the blocks that a list of the request names, and of them those that the window shows.

// What the last query of a request sees.
struct Seen {
  position: i32,
  list: i32,
}

fn seenBy(request: u32, kvHead: u32) -> Seen {
  return Seen(contextLengthOf(request) - 1, listOf(request, kvHead));
}

// Word of the first entry of a list in `selection`, negative where the request has none.
fn listOf(request: u32, kvHead: u32) -> i32 {
  let page = indices[params.selectionTableAt + request];
  let word = params.selectionBase + u32(page) * params.selectionPageStride + kvHead * params.selectionHeadStride;
  return select(i32(word), -1, page < 0);
}

// Block ordinal, negative where the list has no such entry.
fn blockOf(list: i32, entry: u32) -> i32 {
  if (list < 0) {
    return -1;
  }
  return selection[u32(list) + entry];
}

// Position of key i of the selected blocks, negative where it is not seen.
fn positionOf(seen: Seen, i: u32) -> i32 {
  let block = blockOf(seen.list, i / params.tokensPerBlock);
  let position = block * i32(params.tokensPerBlock) + i32(i % params.tokensPerBlock);
  let distance = seen.position - position;
  let visible = block >= 0 && distance >= 0 && (distance < params.slidingWindow || position < params.numSinkTokens);
  return select(-1, position, visible);
}

// Keys that queries from position `first` to `last` may see are those in the segments: one for each block of the list.
fn numSegments() -> u32 {
  return params.maxBlocks;
}

// [begin, end)
fn segmentOf(segment: u32, request: u32, kvHead: u32, first: i32, last: i32) -> vec2i {
  let block = blockOf(listOf(request, kvHead), segment);
  if (block < 0 || block > last / i32(params.tokensPerBlock)) {
    return vec2i(0, 0);
  }
  let begin = block * i32(params.tokensPerBlock);
  let end = min(begin + i32(params.tokensPerBlock), last + 1);
  let windowStart = windowStartOf(first);
  // What lies between sinks and window is seen by nobody.
  return vec2i(select(begin, max(begin, windowStart), begin >= sinkEndOf(windowStart)), end);
}
