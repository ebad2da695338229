// The sum over the slices of a row group, inside a subgroup: no workgroup memory, no barrier. Lane = row group * SLICES + slice.
// SLICES is a power of two that divides every subgroup size of the device, and a workgroup is one row, whose invocations fill its
// subgroups in order.

// Called by all invocations of a workgroup together; each gets the sum of its row group.
fn sumOfSlices(value: vec4f, lane: u32) -> vec4f {
  var sum = value;
  for (var mask = 1u; mask < SLICES; mask *= 2u) {
    sum += subgroupShuffleXor(sum, mask);
  }
  return sum;
}
