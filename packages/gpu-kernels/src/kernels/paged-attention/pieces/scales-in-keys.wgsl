// Values are part of the keys, and so are their scales.

fn valueScaleOf(request: u32, position: u32, kvHead: u32) -> f32 {
  return keyScaleOf(request, position, kvHead);
}
