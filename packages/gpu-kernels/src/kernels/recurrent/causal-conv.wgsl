// Depthwise causal convolution over packed tokens, then SiLU:
//   output[t, c] = silu(bias[c] + sum_k weight[c, k] * input[t - (WIDTH - 1) + k, c])
// Tokens before a request's first one come from its tail page, which holds rows of [CHANNELS]. Without a ring these are the last
// WIDTH - 1 of them, oldest first. In a ring, the sequence's token p lies in row p % PAGE_ROWS.
//
// One workgroup = 64 channels of one tile of 16 tokens. Tiles are counted from each request's own first token, so tile 0 is the
// only one that looks back into the tail page, and its invocation of a channel is the only one that rewrites that channel there:
// it takes the old values into registers before it stores the new ones.

override CHANNELS: u32;
override WIDTH: u32;
override PAGE_ROWS: u32;
override RING: bool;

const CHANNELS_PER_WORKGROUP = 64u;
const TOKENS_PER_TILE = 16u;

override HISTORY = i32(WIDTH) - 1;
override CHANNEL_GROUPS = (CHANNELS + CHANNELS_PER_WORKGROUP - 1u) / CHANNELS_PER_WORKGROUP;

// A request of n tokens needs ceil(n / 16) tiles. Giving request r the numbers from floor(start / 16) + r on leaves it at least
// so many, and makes a tile's request a matter of searching the starts, whatever the lengths are.
fn firstTileOf(request: u32) -> u32 {
  return tables[params.startsOffset + request] / TOKENS_PER_TILE + request;
}

fn requestOf(tile: u32) -> u32 {
  var low = 0u;
  var high = params.numRequests;
  while (high - low > 1u) {
    let middle = (low + high) / 2u;
    if (firstTileOf(middle) <= tile) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

// The exponent is kept below the overflow of f32; beyond it the result is 0 to every digit.
fn silu(x: f32) -> f32 {
  return x / (1.0 + exp(-max(x, -80.0)));
}

// Where row `row` of a page lies for one channel.
fn placeOfRow(page: u32, row: i32, channel: u32) -> u32 {
  return params.tailBase + page * params.tailStride + u32(row) * CHANNELS + channel;
}

// The row of the page that a token is kept in, counted from the request's first token of this call: negative = before it.
// `numTokens` are those that the page is to hold behind that first token.
fn rowOf(token: i32, numTokens: i32, position: u32) -> i32 {
  if (!RING) {
    return token - (numTokens - HISTORY);
  }
  // A token before the call is at most HISTORY before it, and a ring has as many rows.
  return i32((position % PAGE_ROWS + PAGE_ROWS + u32(token)) % PAGE_ROWS);
}

// Keeps tokens from `firstKept` up to `numTokens` in a page. `history` are the four before token 0, newest last.
fn keepLast(page: u32, firstKept: i32, numTokens: i32, position: u32, history: vec4f, inputColumn: u32, channel: u32) {
  for (var token = firstKept; token < numTokens; token++) {
    var value: f32;
    if (token < 0) {
      value = history[4 + token];
    } else {
      value = input[inputColumn + u32(token) * params.inputStride];
    }
    tailPages[placeOfRow(page, rowOf(token, numTokens, position), channel)] = value;
  }
}

@compute @workgroup_size(CHANNELS_PER_WORKGROUP)
fn main(
  @builtin(workgroup_id) workgroup: vec3u,
  @builtin(num_workgroups) numWorkgroups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let work = workgroup.y * numWorkgroups.x + workgroup.x;
  let tile = work / CHANNEL_GROUPS;
  let channel = (work % CHANNEL_GROUPS) * CHANNELS_PER_WORKGROUP + lane;
  if (tile >= params.numTokens / TOKENS_PER_TILE + params.numRequests || channel >= CHANNELS) {
    return;
  }
  let request = requestOf(tile);
  let start = tables[params.startsOffset + request];
  let numTokens = i32(tables[params.startsOffset + request + 1u] - start);
  let firstToken = i32((tile - firstTileOf(request)) * TOKENS_PER_TILE);
  if (firstToken >= numTokens) {
    return;
  }
  let inputColumn = params.inputOffset + start * params.inputStride + channel;
  // A negative index, read as u32, is beyond every pool.
  let source = tables[params.tailIndexOffset + request];
  let position = positionOf(request);

  // The last four inputs and their weights, newest last. Of a narrower convolution the first entries stay unused.
  var window = vec4f();
  var taps = vec4f();
  for (var k = 0; k < i32(WIDTH); k++) {
    taps = vec4f(taps.yzw, weight[params.weightOffset + channel * WIDTH + u32(k)]);
  }
  for (var back = HISTORY; back > 0; back--) {
    let token = firstToken - back;
    var value = 0.0;
    if (token >= 0) {
      value = input[inputColumn + u32(token) * params.inputStride];
    } else if (source < params.numTailPages) {
      value = tailPages[placeOfRow(source, rowOf(token, 0, position), channel)];
    }
    window = vec4f(window.yzw, value);
  }
  let history = window;

  let offset = bias[params.biasOffset + channel];
  let end = min(firstToken + i32(TOKENS_PER_TILE), numTokens);
  var snapshots = snapshotsOf(request);
  while (snapshots.position != 0u && snapshots.position <= u32(firstToken)) {
    snapshots = following(snapshots);
  }
  for (var token = firstToken; token < end; token++) {
    window = vec4f(window.yzw, input[inputColumn + u32(token) * params.inputStride]);
    var sum = offset;
    if (WIDTH > 3u) {
      sum += taps.x * window.x;
    }
    if (WIDTH > 2u) {
      sum += taps.y * window.y;
    }
    sum += taps.z * window.z;
    sum += taps.w * window.w;
    output[params.outputOffset + (start + u32(token)) * params.outputStride + channel] = silu(sum);
    while (snapshots.position == u32(token) + 1u) {
      if (snapshots.page < params.numTailPages) {
        for (var back = 0; back < HISTORY; back++) {
          tailPages[placeOfRow(snapshots.page, rowOf(token - back, token + 1, position), channel)] = window[3 - back];
        }
      }
      snapshots = following(snapshots);
    }
  }

  let destination = tables[params.tailTargetOffset + request];
  if (firstToken == 0 && destination < params.numTailPages) {
    // A ring that stays in its page has its old rows there already.
    let oldRows = select(HISTORY, 0, RING && destination == source);
    keepLast(destination, max(-oldRows, numTokens - i32(PAGE_ROWS)), numTokens, position, history, inputColumn, channel);
  }
}

fn positionOf(request: u32) -> u32 {
  if (!RING) {
    return 0u;
  }
  return tables[params.positionsOffset + request];
}
