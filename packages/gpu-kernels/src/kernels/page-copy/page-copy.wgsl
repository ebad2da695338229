// Copies and clears whole slots of one pool buffer. `Unit` (u32 or vec4u) is declared by page-copy.ts in front of this text.

struct Params {
  // Pairs to copy, or slots to clear.
  count: u32,
  slotUnits: u32,
  // Workgroups that share one slot.
  groupsPerSlot: u32,
}

// The whole pool, [numSlots, slotUnits].
@group(0) @binding(0) var<storage, read_write> pool: array<Unit>;
// copyPages: [count, 2], source and target; clearPages: [count].
@group(0) @binding(1) var<storage, read> slots: array<u32>;
@group(0) @binding(2) var<uniform> params: Params;

const LANES = 64u;

// Each workgroup does a stretch of `unitsPerLane * LANES` units of one slot; neighbouring lanes touch neighbouring units.
override unitsPerLane: u32 = 4;

struct Stretch {
  // Position in `slots`.
  entry: u32,
  // Units from the start of the slot, [begin, end).
  begin: u32,
  end: u32,
}

fn stretchOf(group: vec3u, groups: vec3u) -> Stretch {
  let index = group.y * groups.x + group.x;
  let entry = index / params.groupsPerSlot;
  let begin = (index % params.groupsPerSlot) * unitsPerLane * LANES;
  return Stretch(entry, begin, min(begin + unitsPerLane * LANES, params.slotUnits));
}

@compute @workgroup_size(LANES)
fn copyPages(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let stretch = stretchOf(group, groups);
  if (stretch.entry >= params.count) {
    return;
  }
  let source = slots[stretch.entry * 2] * params.slotUnits;
  let target_ = slots[stretch.entry * 2 + 1] * params.slotUnits;
  for (var unit = stretch.begin + lane; unit < stretch.end; unit += LANES) {
    pool[target_ + unit] = pool[source + unit];
  }
}

@compute @workgroup_size(LANES)
fn clearPages(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let stretch = stretchOf(group, groups);
  if (stretch.entry >= params.count) {
    return;
  }
  let target_ = slots[stretch.entry] * params.slotUnits;
  for (var unit = stretch.begin + lane; unit < stretch.end; unit += LANES) {
    pool[target_ + unit] = Unit();
  }
}
