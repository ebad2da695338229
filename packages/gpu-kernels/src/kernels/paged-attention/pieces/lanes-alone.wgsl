// Threads speak to each other through workgroup memory only. LANES is 1.

fn threadOf(localIndex: u32) -> u32 {
  return localIndex;
}

fn sumOfLanes(number: f32) -> f32 {
  return number;
}

fn maxOfLanes(number: f32) -> f32 {
  return number;
}
