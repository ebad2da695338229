// How many keys the last query of a request sees, under a window: its sinks and the window.

fn numKeysOf(request: u32) -> u32 {
  let context = contextLengthOf(request);
  let windowStart = windowStartOf(context - 1);
  return u32(sinkEndOf(windowStart) + context - windowStart);
}
