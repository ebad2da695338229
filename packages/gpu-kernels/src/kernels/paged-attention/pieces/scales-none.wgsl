// Stored numbers mean themselves.

fn keyScaleOf(request: u32, position: u32, kvHead: u32) -> f32 {
  return 1.0;
}

fn valueScaleOf(request: u32, position: u32, kvHead: u32) -> f32 {
  return 1.0;
}
