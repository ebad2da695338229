// How the keys that one query sees are cut into partitions. It depends on the request alone, so that its result does not
// depend on what it is batched with.

struct Partitioning {
  numKeys: u32,
  keysPerPartition: u32,
  // At most params.numPartitions; the last one takes what is left.
  numPartitions: u32,
}

fn partitioningOf(request: u32) -> Partitioning {
  var p: Partitioning;
  p.numKeys = numKeysOf(request);
  p.keysPerPartition = TILE_KEYS * max(1u, (p.numKeys + TILE_KEYS * MAX_PARTITIONS - 1u) / (TILE_KEYS * MAX_PARTITIONS));
  p.numPartitions = min((p.numKeys + p.keysPerPartition - 1u) / p.keysPerPartition, params.numPartitions);
  return p;
}
