// Scales of the values' pages, as those of the keys.

fn valueScaleOf(request: u32, position: u32, kvHead: u32) -> f32 {
  let page = pageOf(params.valueScale, request, position);
  if (page < 0) {
    return -1.0;
  }
  return valueScales[scaleWordOf(params.valueScale, page, position, kvHead)];
}
