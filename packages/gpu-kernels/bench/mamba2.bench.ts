import { openGpu } from '@bufferwise-internal/webgpu-node';
import { ComputeContext } from '../src/kernel/compute-context.ts';
import type { ComputeStep, StepCounts } from '../src/kernel/compute-step.ts';
import { BUFFER_USAGE } from '../src/kernel/gpu-flags.ts';
import { type Mamba2MixerOperands, recordMamba2Mixer, warmUpMamba2 } from '../src/kernels/mamba2/mamba2.ts';
import { type Mamba2Shape, mamba2Layout } from '../src/kernels/mamba2/mamba2-shape.ts';
import { packHeadParams, recordSsm } from '../src/kernels/mamba2/ssm.ts';
import { packRequests } from '../src/kernels/recurrent/packed-requests.ts';
import { medianMs } from './median-ms.ts';

export interface Mamba2Figure {
  /** `heads x headDim x stateSize`. */
  shape: string;
  /** `recurrence` alone, or `mixer`: convolution and recurrence. */
  work: 'recurrence' | 'mixer';
  numTokens: number;
  /** Median milliseconds of all tokens of one request in one scan. */
  scanMs: number;
  scanDispatches: number;
  /** Median milliseconds of the same tokens one by one, all of them in one submission. */
  stepsMs: number;
  stepsDispatches: number;
  /** How many times faster the scan is. */
  ratio: number;
  /** Median milliseconds of one token of one request, submission included: what a decode step waits for. */
  oneStepMs: number;
  /** Median milliseconds of one token of each of 64 requests, submission included. */
  step64Ms: number;
}

export const columns = {
  scanMs: { unit: 'ms', better: 'lower' },
  scanDispatches: { unit: 'dispatches', better: 'lower' },
  stepsMs: { unit: 'ms', better: 'lower' },
  stepsDispatches: { unit: 'dispatches', better: 'lower' },
  ratio: { unit: 'x', better: 'higher' },
  oneStepMs: { unit: 'ms', better: 'lower' },
  step64Ms: { unit: 'ms', better: 'lower' },
} satisfies Partial<Record<keyof Mamba2Figure, object>>;

const SHAPES: readonly Mamba2Shape[] = [
  { numHeads: 8, headDim: 32, stateSize: 16, numGroups: 1, convWidth: 4 },
  { numHeads: 8, headDim: 64, stateSize: 128, numGroups: 1, convWidth: 4 },
];
const NUM_TOKENS = 512;
const NUM_REQUESTS = 64;

/** One scan over 512 tokens against 512 steps, and decode steps of one and of many requests. */
export default async function bench(): Promise<Mamba2Figure[]> {
  const adapter = await openGpu();
  const device = await adapter.requestDevice({ label: 'mamba2 bench' });
  const context = ComputeContext.of(device);
  const figures: Mamba2Figure[] = [];
  for (const shape of SHAPES) {
    await warmUpMamba2(context, shape);
    const layer = createLayer(device, shape);
    for (const work of ['recurrence', 'mixer'] as const) {
      const run = (record: (step: ComputeStep) => void): StepCounts => {
        const step = context.step('bench');
        record(step);
        return step.submit();
      };
      const scan = () => run((step) => recordCall(step, shape, layer, work, [NUM_TOKENS], 0));
      const steps = () =>
        run((step) => {
          for (let token = 0; token < NUM_TOKENS; token++) recordCall(step, shape, layer, work, [1], token);
        });
      const oneStep = () => run((step) => recordCall(step, shape, layer, work, [1], 0));
      const manySteps = () => run((step) => recordCall(step, shape, layer, work, new Array(NUM_REQUESTS).fill(1), 0));
      const [scanMs, stepsMs, oneStepMs, step64Ms] = await medianMs(device, [scan, steps, oneStep, manySteps]);
      figures.push({
        shape: `${shape.numHeads} x ${shape.headDim} x ${shape.stateSize}`,
        work,
        numTokens: NUM_TOKENS,
        scanMs,
        scanDispatches: scan().numDispatches,
        stepsMs,
        stepsDispatches: steps().numDispatches,
        ratio: stepsMs / scanMs,
        oneStepMs,
        step64Ms,
      });
    }
  }
  await device.queue.onSubmittedWorkDone();
  device.destroy();
  return figures;
}

type Layer = Omit<Mamba2MixerOperands, 'requests' | 'tail' | 'state'> & { tailPool: GPUBuffer; statePool: GPUBuffer };

function createLayer(device: GPUDevice, shape: Mamba2Shape): Layer {
  const layout = mamba2Layout(shape);
  const filled = (words: number, middle = 0) => {
    const buffer = device.createBuffer({ size: 4 * words, usage: BUFFER_USAGE.STORAGE | BUFFER_USAGE.COPY_DST });
    // A golden-ratio sequence: even, without a generator, and the same in every run.
    const values = Float32Array.from({ length: words }, (_, i) => middle + ((i * 0.6180339887) % 1) - 0.5);
    device.queue.writeBuffer(buffer, 0, values);
    return buffer;
  };
  const rows = (strideWords: number) => ({ buffer: filled(NUM_TOKENS * strideWords), offsetWords: 0, strideWords });
  const heads = (value: number) => new Array(shape.numHeads).fill(value);
  const headParams = filled(3 * shape.numHeads);
  device.queue.writeBuffer(headParams, 0, packHeadParams({ dtBias: heads(-3), aLog: heads(1), dSkip: heads(1) }));
  return {
    projection: rows(layout.projection.rowWords),
    convWeight: { buffer: filled(layout.numChannels * shape.convWidth) },
    convBias: { buffer: filled(layout.numChannels) },
    headParams: { buffer: headParams },
    xBC: rows(layout.numChannels),
    y: rows(layout.innerSize),
    tailPool: filled(NUM_REQUESTS * layout.tailWords),
    statePool: filled(NUM_REQUESTS * layout.stateWords),
  };
}

function recordCall(
  step: ComputeStep,
  shape: Mamba2Shape,
  layer: Layer,
  work: Mamba2Figure['work'],
  tokensPerRequest: readonly number[],
  firstToken: number,
): void {
  const layout = mamba2Layout(shape);
  const from = <Rows extends { offsetWords: number; strideWords: number }>(rows: Rows): Rows => ({
    ...rows,
    offsetWords: rows.offsetWords + firstToken * rows.strideWords,
  });
  const requests = packRequests(step, tokensPerRequest);
  const pageIndex = { buffer: step.upload(Int32Array.from(tokensPerRequest, (_, r) => r)) };
  const operands: Mamba2MixerOperands = {
    ...layer,
    requests,
    projection: from(layer.projection),
    xBC: from(layer.xBC),
    y: from(layer.y),
    tail: { pool: layer.tailPool, baseWords: 0, strideWords: layout.tailWords, pageIndex },
    state: { pool: layer.statePool, baseWords: 0, strideWords: layout.stateWords, pageIndex },
  };
  if (work === 'mixer') {
    recordMamba2Mixer(step, shape, operands);
    return;
  }
  const dt = { ...operands.projection, offsetWords: operands.projection.offsetWords + layout.projection.dt };
  recordSsm(step, shape, { ...operands, dt });
}
