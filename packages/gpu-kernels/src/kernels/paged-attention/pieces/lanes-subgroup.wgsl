// LANES neighbouring threads, a power of two and at most a subgroup, add up their numbers without memory or barrier.

var<workgroup> numThreads: atomic<u32>;

// A number for each thread, such that LANES neighbours are in one subgroup. WGSL does not say how a workgroup is cut into
// subgroups, so subgroups take their numbers one after the other.
fn threadOf(localIndex: u32) -> u32 {
  // SwiftShader zeroes workgroup memory for each subgroup as it begins: nobody may count before all have begun.
  workgroupBarrier();
  let size = subgroupAdd(1u);
  var first = 0u;
  if (subgroupElect()) {
    first = atomicAdd(&numThreads, size);
  }
  return subgroupBroadcastFirst(first) + subgroupExclusiveAdd(1u);
}

// The same to the bit in all of them.
fn sumOfLanes(number: f32) -> f32 {
  var sum = number;
  for (var distance = 1u; distance < LANES; distance *= 2u) {
    sum += subgroupShuffleXor(sum, distance);
  }
  return sum;
}

fn maxOfLanes(number: f32) -> f32 {
  var largest = number;
  for (var distance = 1u; distance < LANES; distance *= 2u) {
    largest = max(largest, subgroupShuffleXor(largest, distance));
  }
  return largest;
}
