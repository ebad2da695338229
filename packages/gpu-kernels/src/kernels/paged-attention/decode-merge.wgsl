// Brings the partitions of decode together. See decode-kernel.ts. A workgroup has one query head of one request, a thread one
// vec4 of it.

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) vec: u32,
) {
  let row = group.y * groups.x + group.x;
  if (row >= params.numRequests * params.numQueryHeads || vec >= VALUE_VECS) {
    return;
  }
  let numPartitions = partitioningOf(row / params.numQueryHeads).numPartitions;
  let first = row * params.numPartitions * (VALUE_VECS + 1u);

  var base = UNSEEN;
  for (var i = 0u; i < numPartitions; i++) {
    base = max(base, partials[first + i * (VALUE_VECS + 1u) + VALUE_VECS].x);
  }
  var total = 0.0;
  var sum = vec4f();
  for (var i = 0u; i < numPartitions; i++) {
    let at = first + i * (VALUE_VECS + 1u);
    let stats = partials[at + VALUE_VECS];
    let scale = exp2(stats.x - base);
    total += stats.y * scale;
    sum = fma(vec4f(scale), partials[at + vec], sum);
  }
  output[row * VALUE_VECS + vec] = sum * normaliser(base, total, row % params.numQueryHeads);
}
