// Converts slot ids into the page indices that kernels read: what `PageIndexConverter` of scratch-allocator does, on the device.

struct Params {
  numRequests: u32,
}

// How one table is made from the slot ids of its lifecycle. Positions count words of `words`.
struct Section {
  // Sub-pages a slot, pages a block, place of the buffer in the slot.
  scale: u32,
  expansion: u32,
  layerOffset: u32,
  // Buffers that the layer has in the coalesced buffer, and which of them this one is.
  scratchPagesPerBlock: u32,
  rankInLayer: u32,
  // Blocks of a row, and where the rows of slot ids begin: [numRequests, blocks].
  blocks: u32,
  baseAt: u32,
  // Where the scratch of the requests begins: [numRequests, 3] of begin, end, position of the first slot id. 0 = none has any.
  scratchAt: u32,
  // First entry of the table in `tables`.
  tableAt: u32,
}

const SECTION_WORDS = 9u;

// The sections, then what they point to.
@group(0) @binding(0) var<storage, read> words: array<i32>;
// The tables, each [numRequests, blocks * expansion].
@group(0) @binding(1) var<storage, read_write> tables: array<i32>;
@group(0) @binding(2) var<uniform> params: Params;

fn sectionOf(index: u32) -> Section {
  let at = index * SECTION_WORDS;
  return Section(
    u32(words[at]), u32(words[at + 1]), u32(words[at + 2]), u32(words[at + 3]), u32(words[at + 4]),
    u32(words[at + 5]), u32(words[at + 6]), u32(words[at + 7]), u32(words[at + 8]),
  );
}

// Sub-page of a block, -1 when it has no page. Scratch blocks lie end to end over the sub-pages of the scratch slots.
fn subPageOf(section: Section, request: u32, block: u32) -> i32 {
  if (section.scratchAt != 0) {
    let at = section.scratchAt + request * 3;
    let begin = u32(words[at]);
    if (block >= begin && block < u32(words[at + 1])) {
      let linear = (block - begin) * section.scratchPagesPerBlock + section.rankInLayer;
      let slot = words[u32(words[at + 2]) + linear / section.scale];
      return slot * i32(section.scale) + i32(linear % section.scale);
    }
  }
  let slot = words[section.baseAt + request * section.blocks + block];
  return select(slot * i32(section.scale) + i32(section.layerOffset), -1, slot < 0);
}

const LANES = 64u;
override entriesPerLane: u32;

// One lane makes several entries, a workgroup a stretch of neighbours; the second dimension counts sections.
@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let section = sectionOf(group.y);
  let rowLength = section.blocks * section.expansion;
  let numEntries = params.numRequests * rowLength;
  let end = min(numEntries, (group.x + 1) * LANES * entriesPerLane);
  for (var i = group.x * LANES * entriesPerLane + lane; i < end; i += LANES) {
    let column = i % rowLength;
    let subPage = subPageOf(section, i / rowLength, column / section.expansion);
    let entry = subPage * i32(section.expansion) + i32(column % section.expansion);
    tables[section.tableAt + i] = select(entry, -1, subPage < 0);
  }
}
