// Scales of the keys' pages lie in a buffer of their own, with pages and tables of its own.

// Negative where the request has no page of scales.
fn keyScaleOf(request: u32, position: u32, kvHead: u32) -> f32 {
  let page = pageOf(params.keyScale, request, position);
  if (page < 0) {
    return -1.0;
  }
  return keyScales[scaleWordOf(params.keyScale, page, position, kvHead)];
}
