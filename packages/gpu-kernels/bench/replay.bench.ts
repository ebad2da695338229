import { openGpu } from '@bufferwise-internal/webgpu-node';
import { ComputeContext } from '../src/kernel/compute-context.ts';
import type { ComputeStep } from '../src/kernel/compute-step.ts';
import { BUFFER_USAGE } from '../src/kernel/gpu-flags.ts';
import type { StorageDtype } from '../src/kernel/storage-dtype.ts';
import {
  gatedDeltaRingWords,
  gatedDeltaRowWords,
  recordGatedDelta,
  recordGatedDeltaReplay,
} from '../src/kernels/gated-delta/gated-delta.ts';
import { recordSsmReplay, recordSsmStep, ssmRingWords } from '../src/kernels/mamba2/ssm.ts';
import { packRequests } from '../src/kernels/recurrent/packed-requests.ts';
import {
  afterReplay,
  packReplay,
  type ReplayCursor,
  type ReplayRing,
  settlesRing,
} from '../src/kernels/recurrent/replay-ring.ts';
import { medianMs } from './median-ms.ts';

export interface ReplayFigure {
  family: 'mamba2' | 'gated-delta';
  /** `heads x headDim x stateSize`. */
  shape: string;
  /** How states and rings are stored. */
  dtype: StorageDtype;
  ringRows: number;
  numRequests: number;
  /** Bytes of a decode step of one request that no method saves: the state read, inputs read, outputs written. */
  leastBytes: number;
  /** Bytes where every step writes the state, as a multiple of that. */
  writeBackRatio: number;
  /** Bytes where steps replay, as a multiple of that: means over a round of the ring, the write of the state in it. */
  replayRatio: number;
  /** Bytes written in a step, write-back over replay. */
  writtenRatio: number;
  /** Median milliseconds of a round of the ring, all requests, each step a submission. */
  writeBackMs: number;
  replayMs: number;
  /** How many times faster replay is. */
  speedup: number;
}

export const columns = {
  leastBytes: { unit: 'bytes', better: 'none' },
  writeBackRatio: { unit: 'x', better: 'none' },
  replayRatio: { unit: 'x', better: 'lower' },
  writtenRatio: { unit: 'x', better: 'higher' },
  writeBackMs: { unit: 'ms', better: 'none' },
  replayMs: { unit: 'ms', better: 'lower' },
  speedup: { unit: 'x', better: 'higher' },
} satisfies Partial<Record<keyof ReplayFigure, object>>;

const SHAPE = { numHeads: 8, headDim: 64, stateSize: 128, numGroups: 1 };
const NUM_REQUESTS = 4;

/** Decode by replay against decode that writes the state at every token: bytes, and time in turns. */
export default async function bench(): Promise<ReplayFigure[]> {
  const adapter = await openGpu();
  const requiredFeatures = (['subgroups', 'shader-f16'] as const).filter((feature) => adapter.features.has(feature));
  const device = await adapter.requestDevice({ label: 'replay bench', requiredFeatures });
  const figures: ReplayFigure[] = [];
  for (const family of ['mamba2', 'gated-delta'] as const) {
    for (const [rows, dtype] of [
      [9, 'f32'],
      [17, 'f32'],
      [17, 'f16'],
    ] as const) {
      figures.push(await figure(device, family, { rows, maxTokens: 1, dtype }));
    }
  }
  device.destroy();
  return figures;
}

async function figure(device: GPUDevice, family: ReplayFigure['family'], ring: ReplayRing): Promise<ReplayFigure> {
  const dtype = ring.dtype ?? 'f32';
  const layer = createLayer(device, family, ring);
  let cursor: ReplayCursor = { position: 0, length: 0 };
  const stepsPerRound = ring.rows - ring.maxTokens;
  const writeBack = () => {
    for (let s = 0; s < stepsPerRound; s++) layer.submit((step) => layer.writeBack(step));
  };
  const replay = () => {
    for (let s = 0; s < stepsPerRound; s++) {
      layer.submit((step) => layer.replay(step, cursor));
      cursor = afterReplay(cursor, settlesRing(ring, cursor, 1), 1);
    }
  };
  const [writeBackMs, replayMs] = await medianMs(device, [writeBack, replay]);
  layer.destroy();
  const { stateBytes, rowBytes, inputBytes, outputBytes } = layer;
  const leastBytes = stateBytes + inputBytes + outputBytes;
  const meanRows = (stepsPerRound + 1) / 2;
  const written = stateBytes / stepsPerRound + rowBytes + outputBytes;
  return {
    family,
    shape: `${SHAPE.numHeads} x ${SHAPE.headDim} x ${SHAPE.stateSize}`,
    dtype,
    ringRows: ring.rows,
    numRequests: NUM_REQUESTS,
    leastBytes,
    writeBackRatio: (leastBytes + stateBytes) / leastBytes,
    replayRatio: (stateBytes + inputBytes + meanRows * rowBytes + written) / leastBytes,
    writtenRatio: (stateBytes + outputBytes) / written,
    writeBackMs,
    replayMs,
    speedup: writeBackMs / replayMs,
  };
}

/** A layer of one family with pages for all requests, filled evenly. */
function createLayer(device: GPUDevice, family: ReplayFigure['family'], ring: ReplayRing) {
  const { numHeads, headDim, stateSize, numGroups } = SHAPE;
  const context = ComputeContext.of(device);
  const buffers: GPUBuffer[] = [];
  const filled = (words: number) => {
    const buffer = device.createBuffer({ size: 4 * words, usage: BUFFER_USAGE.STORAGE | BUFFER_USAGE.COPY_DST });
    // A golden-ratio sequence: even, without a generator, and the same in every run.
    device.queue.writeBuffer(
      buffer,
      0,
      Float32Array.from({ length: words }, (_, i) => ((i * 0.6180339887) % 1) - 0.5),
    );
    buffers.push(buffer);
    return buffer;
  };
  const rows = (strideWords: number) => ({ buffer: filled(NUM_REQUESTS * strideWords), offsetWords: 0, strideWords });
  const perWord = ring.dtype === 'f16' ? 2 : 1;
  const innerSize = numHeads * headDim;
  const stateWords = (innerSize * stateSize) / perWord;
  const isDelta = family === 'gated-delta';
  const tokenWords = isDelta ? gatedDeltaRowWords(SHAPE) : innerSize + 2 * numGroups * stateSize;
  const gates = [rows(numHeads), rows(numHeads)];
  const ringWords = isDelta ? gatedDeltaRingWords(SHAPE, ring) : ssmRingWords(SHAPE, ring);
  const operands = { headParams: { buffer: filled(3 * numHeads) }, y: rows(innerSize) };
  const tokens = rows(tokenWords);
  const statePool = filled(NUM_REQUESTS * stateWords);
  const ringPool = filled(NUM_REQUESTS * ringWords);
  const counts = new Array(NUM_REQUESTS).fill(1);
  const pages = (step: ComputeStep, pool: GPUBuffer, strideWords: number) => ({
    pool,
    baseWords: 0,
    strideWords,
    pageIndex: { buffer: step.upload(Int32Array.from(counts, (_, r) => r)) },
  });
  const state = (step: ComputeStep) => ({ ...pages(step, statePool, stateWords), dtype: ring.dtype });
  const delta = { qkv: tokens, decay: gates[0], write: gates[1] };
  const ssm = { xBC: tokens, dt: gates[0] };
  return {
    stateBytes: 4 * stateWords,
    rowBytes: (4 * ringWords) / ring.rows,
    inputBytes: 4 * (tokenWords + numHeads * (isDelta ? 2 : 1)),
    outputBytes: 4 * innerSize,
    submit(record: (step: ComputeStep) => void) {
      const step = context.step('replay bench');
      record(step);
      step.submit();
    },
    writeBack(step: ComputeStep) {
      const call = { ...operands, requests: packRequests(step, counts), state: state(step) };
      if (isDelta) recordGatedDelta(step, SHAPE, { ...call, ...delta });
      else recordSsmStep(step, SHAPE, { ...call, ...ssm });
    },
    replay(step: ComputeStep, cursor: ReplayCursor) {
      const replay = packReplay(
        step,
        ring,
        counts,
        counts.map(() => cursor),
      );
      const call = { ...operands, replay, state: state(step), ring: pages(step, ringPool, ringWords) };
      if (isDelta) recordGatedDeltaReplay(step, SHAPE, { ...call, ...delta });
      else recordSsmReplay(step, SHAPE, { ...call, ...ssm });
    },
    destroy() {
      for (const buffer of buffers) buffer.destroy();
    },
  };
}
