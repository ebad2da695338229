// Which keys are looked at: those in [0, sinkEnd) and from windowStart on, in order.

// What the last query of a request sees.
struct Seen {
  windowStart: i32,
  sinkEnd: i32,
}

fn seenBy(request: u32, kvHead: u32) -> Seen {
  let windowStart = windowStartOf(contextLengthOf(request) - 1);
  return Seen(windowStart, sinkEndOf(windowStart));
}

// Position of key i of those seen.
fn positionOf(seen: Seen, i: u32) -> i32 {
  return select(i32(i) - seen.sinkEnd + seen.windowStart, i32(i), i32(i) < seen.sinkEnd);
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
