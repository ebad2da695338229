// The sum over the slices of a row group, through workgroup memory. Lane = row group * SLICES + slice.

override SLICE_SUMS = select(1u, WORKGROUP_SIZE, SLICES > 1u);
var<workgroup> sliceValues: array<vec4f, SLICE_SUMS>;

// Called by all invocations of a workgroup together; each gets the sum of its row group.
fn sumOfSlices(value: vec4f, lane: u32) -> vec4f {
  if (SLICES == 1u) {
    return value;
  }
  workgroupBarrier();
  sliceValues[lane] = value;
  workgroupBarrier();
  let first = lane / SLICES * SLICES;
  var sum = sliceValues[first];
  for (var s = 1u; s < SLICES; s++) {
    sum += sliceValues[first + s];
  }
  return sum;
}
