// Quantises rows of new tokens into pages of int8. page-places.wgsl stands in front. See quantised-page-write.ts.
//
// A workgroup has the new rows of one page of one request, and the heads that share a scale. First it finds the largest number;
// then the scale of the page, which only grows; then it writes the new rows, and where the scale grew the older rows again.

struct Params {
  pages: Pages,
  scales: Pages,
  numRequests: u32,
  // vec4 of one row, the first row in `rows`, and the heads of one scale.
  rowStride: u32,
  rowsBase: u32,
  groupVecs: u32,
}

const LANES = 64u;

// Largest magnitude of each lane's numbers.
var<workgroup> largest: array<f32, LANES>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  // Request r has the tiles, one for each of its pages, from queryStart[r] / tokensPerPage + 2 * r on.
  let tile = group.x;
  let tokensPerPage = params.pages.tokensPerPage;
  var request = 0u;
  var beyond = params.numRequests;
  while (beyond - request > 1u) {
    let middle = (request + beyond) / 2u;
    if (firstTileOf(middle) <= tile) {
      request = middle;
    } else {
      beyond = middle;
    }
  }
  let firstRow = queryStart[request];
  let numTokens = queryStart[request + 1u] - firstRow;
  let context = contextLength[request];
  let firstPosition = context - numTokens;
  let column = firstPosition / tokensPerPage + tile - firstTileOf(request);
  let begin = max(firstPosition, column * tokensPerPage);
  let end = min(context, (column + 1u) * tokensPerPage);
  if (begin >= end) {
    return;
  }
  let entry = entryOf(params.pages, request, begin);
  let scaleEntry = entryOf(params.scales, request, begin);
  if (entry < 0 || scaleEntry < 0) {
    return;
  }
  let page = pageTable[entry];
  let scalePage = scaleTable[scaleEntry];
  if (page < 0 || scalePage < 0) {
    return;
  }
  let firstHead = group.y * params.scales.headsPerScale;
  let scaleWord = scaleWordOf(params.scales, scalePage, begin, firstHead);
  let target_ = rowOf(params.pages, page, column * tokensPerPage) + group.y * params.groupVecs;
  let source = params.rowsBase + (firstRow + begin - firstPosition) * params.rowStride + group.y * params.groupVecs;
  let numOld = begin - column * tokensPerPage;
  let numNew = (end - begin) * params.groupVecs;

  // What a page has from its owner before is no scale.
  var oldScale = 0.0;
  if (numOld > 0u) {
    oldScale = scales[scaleWord];
  }
  var most = 0.0;
  for (var i = lane; i < numNew; i += LANES) {
    let numbers = abs(rows[source + i / params.groupVecs * params.rowStride + i % params.groupVecs]);
    most = max(most, max(max(numbers.x, numbers.y), max(numbers.z, numbers.w)));
  }
  largest[lane] = most;
  workgroupBarrier();
  for (var i = 0u; i < LANES; i++) {
    most = max(most, largest[i]);
  }
  let scale = max(oldScale, most / 127.0);
  let unit = select(0.0, 1.0 / scale, scale > 0.0);

  if (scale > oldScale) {
    for (var i = lane; i < numOld * params.groupVecs; i += LANES) {
      let word = target_ + i / params.groupVecs * params.pages.rowStride + i % params.groupVecs;
      pages[word] = packed(unpacked(pages[word]) * (oldScale * unit));
    }
    if (lane == 0u) {
      scales[scaleWord] = scale;
    }
  }
  for (var i = lane; i < numNew; i += LANES) {
    let numbers = rows[source + i / params.groupVecs * params.rowStride + i % params.groupVecs];
    let word = target_ + (numOld + i / params.groupVecs) * params.pages.rowStride + i % params.groupVecs;
    pages[word] = packed(numbers * unit);
  }
  // A page of zeros begins with the scale 0, whatever lay there.
  if (numOld == 0u && lane == 0u) {
    scales[scaleWord] = scale;
  }
}

fn firstTileOf(request: u32) -> u32 {
  return queryStart[request] / params.pages.tokensPerPage + 2u * request;
}

fn packed(numbers: vec4f) -> u32 {
  let bytes = bitcast<vec4u>(vec4i(round(clamp(numbers, vec4f(-127.0), vec4f(127.0))))) & vec4u(255u);
  return bytes.x | (bytes.y << 8u) | (bytes.z << 16u) | (bytes.w << 24u);
}

fn unpacked(word: u32) -> vec4f {
  return vec4f((vec4i(bitcast<i32>(word)) << vec4u(24u, 16u, 8u, 0u)) >> vec4u(24u));
}
