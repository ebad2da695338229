// Depthwise causal convolution over packed tokens, then SiLU:
//   output[t, c] = silu(bias[c] + sum_k weight[c, k] * input[t - (WIDTH - 1) + k, c])
// Tokens before a request's first one come from its tail page, [WIDTH - 1, CHANNELS], oldest row first.
//
// One workgroup = 64 channels of one tile of 16 tokens. Tiles are counted from each request's own first token, so tile 0 is the
// only one that looks back into the tail page, and its invocation of a channel is the only one that rewrites that channel there:
// it takes the old values into registers before it stores the new ones.

struct Params {
  numRequests: u32,
  numTokens: u32,
  requestStartsOffset: u32,
  inputOffset: u32,
  inputStride: u32,
  weightOffset: u32,
  biasOffset: u32,
  tailIndexOffset: u32,
  tailBase: u32,
  tailStride: u32,
  numTailPages: u32,
  outputOffset: u32,
  outputStride: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> requestStarts: array<u32>;    // [numRequests + 1]
@group(0) @binding(2) var<storage, read> input: array<f32>;            // rows of [CHANNELS]
@group(0) @binding(3) var<storage, read> weight: array<f32>;           // [CHANNELS, WIDTH]
@group(0) @binding(4) var<storage, read> bias: array<f32>;             // [CHANNELS]
@group(0) @binding(5) var<storage, read> tailIndex: array<i32>;        // [numRequests]
@group(0) @binding(6) var<storage, read_write> tailPages: array<f32>;  // pages of [WIDTH - 1, CHANNELS]
@group(0) @binding(7) var<storage, read_write> output: array<f32>;     // rows of [CHANNELS]

override CHANNELS: u32;
override WIDTH: u32;

const CHANNELS_PER_WORKGROUP = 64u;
const TOKENS_PER_TILE = 16u;

override HISTORY = i32(WIDTH) - 1;
override CHANNEL_GROUPS = (CHANNELS + CHANNELS_PER_WORKGROUP - 1u) / CHANNELS_PER_WORKGROUP;

// A request of n tokens needs ceil(n / 16) tiles. Giving request r the numbers from floor(start / 16) + r on leaves it at least
// so many, and makes a tile's request a matter of searching `requestStarts`, whatever the lengths are.
fn firstTileOf(request: u32) -> u32 {
  return requestStarts[params.requestStartsOffset + request] / TOKENS_PER_TILE + request;
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
  let start = requestStarts[params.requestStartsOffset + request];
  let numTokens = i32(requestStarts[params.requestStartsOffset + request + 1u] - start);
  let firstToken = i32((tile - firstTileOf(request)) * TOKENS_PER_TILE);
  if (firstToken >= numTokens) {
    return;
  }
  let inputColumn = params.inputOffset + start * params.inputStride + channel;
  // A negative index, read as u32, is beyond every pool.
  let page = u32(tailIndex[params.tailIndexOffset + request]);
  let hasPage = page < params.numTailPages;
  let tailColumn = params.tailBase + page * params.tailStride + channel;

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
    } else if (hasPage) {
      value = tailPages[tailColumn + u32(HISTORY + token) * CHANNELS];
    }
    window = vec4f(window.yzw, value);
  }

  let offset = bias[params.biasOffset + channel];
  let end = min(firstToken + i32(TOKENS_PER_TILE), numTokens);
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
  }

  // The new tail: the last WIDTH - 1 rows of the old tail and the tokens together. Where a row comes from the old tail it is a
  // later row of the same column, so going upwards reads each before it is overwritten.
  if (firstToken == 0 && hasPage) {
    for (var row = 0; row < HISTORY; row++) {
      let token = numTokens - HISTORY + row;
      var value: f32;
      if (token >= 0) {
        value = input[inputColumn + u32(token) * params.inputStride];
      } else {
        value = tailPages[tailColumn + u32(row + numTokens) * CHANNELS];
      }
      tailPages[tailColumn + u32(row) * CHANNELS] = value;
    }
  }
}
