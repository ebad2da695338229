import type { ConsumerStep } from '@bufferwise/adapter-kit';
import { type ComputeStep, packReplay, type ReplayRing, recordSsmReplay } from '@bufferwise/gpu-kernels';
import type { BoundLayer } from './bound-layer.ts';
import type { RingPlan } from './step-plan.ts';

/**
 * Adds a dispatch for each layer that brings state pages up to their rings, without a token.
 *
 * @param nowhere a buffer for what a step without tokens writes: nothing
 */
export function recordSettling(
  compute: ComputeStep,
  step: ConsumerStep,
  {
    layers,
    ring,
    settled,
    nowhere,
  }: {
    layers: readonly BoundLayer[];
    ring: ReplayRing;
    settled: RingPlan['settled'];
    nowhere: GPUBuffer;
  },
): void {
  if (settled.length === 0) return;
  const cursors = settled.map(({ cursor }) => cursor);
  const replay = packReplay(compute, ring, new Uint32Array(settled.length), cursors, () => true);
  const numHeads = Math.max(...layers.map(({ layer }) => layer.numHeads));
  // Values of the heads are for tokens, of which there are none.
  const nothing = compute.upload(new Float32Array(3 * numHeads));
  for (const bound of layers) {
    const { layer, sizes } = bound;
    const pages = (role: 'ssm_state' | 'replay_ring') => {
      const indices = Int32Array.from(settled, ({ request }) => bound.pageIndex(step, role, request));
      return { ...bound.pool(step, role), pageIndex: { buffer: compute.upload(indices) } };
    };
    recordSsmReplay(compute, layer, {
      replay,
      xBC: { buffer: nothing, offsetWords: 0, strideWords: sizes.numChannels },
      dt: { buffer: nothing, offsetWords: 0, strideWords: layer.numHeads },
      headParams: { buffer: nothing },
      state: pages('ssm_state'),
      ring: pages('replay_ring'),
      y: { buffer: nowhere, offsetWords: 0, strideWords: sizes.innerSize },
    });
  }
}
