// Brings the partitions of decode together. See decode-kernel.ts. A workgroup has one query head of one request, a thread one
// vec4 of it.

@group(0) @binding(0) var<uniform> params: Params;
// [numRequests]
@group(0) @binding(1) var<storage, read> contextLength: array<u32>;
// [numRequests, numQueryHeads, numPartitions, HEAD_VECS + 1], as decode wrote them.
@group(0) @binding(2) var<storage, read> partials: array<vec4f>;
// [numRequests, numQueryHeads, headDim]
@group(0) @binding(3) var<storage, read_write> output: array<vec4f>;

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) vec: u32,
) {
  let row = group.y * groups.x + group.x;
  if (row >= params.numRequests * params.numQueryHeads || vec >= HEAD_VECS) {
    return;
  }
  let numPartitions = partitioningOf(contextLength[row / params.numQueryHeads]).numPartitions;
  let first = row * params.numPartitions * (HEAD_VECS + 1u);

  var base = UNSEEN;
  for (var i = 0u; i < numPartitions; i++) {
    base = max(base, partials[first + i * (HEAD_VECS + 1u) + HEAD_VECS].x);
  }
  var total = 0.0;
  var sum = vec4f();
  for (var i = 0u; i < numPartitions; i++) {
    let at = first + i * (HEAD_VECS + 1u);
    let stats = partials[at + HEAD_VECS];
    let scale = exp2(stats.x - base);
    total += stats.y * scale;
    sum = fma(vec4f(scale), partials[at + vec], sum);
  }
  // A query that saw nothing, for want of pages, gets zeros.
  output[row * HEAD_VECS + vec] = sum * select(0.0, 1.0 / total, total > 0.0);
}
