// Which keys are looked at: those in [0, sinkEnd) and from windowStart on, in order.

// Position of key i, of those that the last query of a request sees.
fn positionOf(request: u32, kvHead: u32, i: u32) -> i32 {
  let windowStart = windowStartOf(contextLengthOf(request) - 1);
  let sinkEnd = sinkEndOf(windowStart);
  return select(i32(i) - sinkEnd + windowStart, i32(i), i32(i) < sinkEnd);
}

// Keys that queries from position `first` to `last` may see are those in the segments.
fn numSegments() -> u32 {
  return 2u;
}

// [begin, end)
fn segmentOf(segment: u32, request: u32, kvHead: u32, first: i32, last: i32) -> vec2i {
  let windowStart = windowStartOf(first);
  if (segment == 0u) {
    return vec2i(0, sinkEndOf(windowStart));
  }
  return vec2i(windowStart, last + 1);
}
