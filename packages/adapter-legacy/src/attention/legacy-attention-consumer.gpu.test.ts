import { describeConsumer } from '@bufferwise/adapter-kit/conformance/consumer';
import { requestTestDevice } from '@bufferwise-internal/webgpu-node/testing';
import { attentionHarness, attentionMix, HEADS } from '../testing/attention-harness.ts';
import type { LegacyAttentionLayer } from './attention-layer.ts';

const device = await requestTestDevice();

const full: LegacyAttentionLayer = { layerId: 0, ...HEADS };
const windowed: LegacyAttentionLayer = { layerId: 1, ...HEADS, slidingWindowSize: 6 };
const windowedAlike: LegacyAttentionLayer = { layerId: 2, ...HEADS, slidingWindowSize: 6 };
const sinks: LegacyAttentionLayer = { layerId: 3, ...HEADS, slidingWindowSize: 5, numSinkTokens: 3 };

// Prefill and decode differ in the last bits, and the suite compares one with the other. Everything else is the same to the bit.
const TOLERANCE = 2e-6;
// Scales of a page grow as rows arrive, so rows are rounded more often in smaller pieces.
const INT8_TOLERANCE = 4e-2;

describeConsumer(
  'legacy attention',
  attentionHarness(
    device,
    [
      attentionMix('two layers in a group, required', [full, windowed, windowedAlike]),
      attentionMix('full required, window optional, sinks private', [
        full,
        { ...windowed, reusePolicy: 'optional' },
        { ...sinks, reusePolicy: 'private' },
      ]),
      attentionMix('f16, full optional, sinks required', [
        { ...full, storage: 'f16', reusePolicy: 'optional' },
        { ...sinks, storage: 'f16', coalescingGroups: { key: 'keys', value: 'values' } },
      ]),
    ],
    TOLERANCE,
  ),
);

describeConsumer(
  'legacy attention in int8',
  attentionHarness(
    device,
    [
      attentionMix('window required, full private', [
        { ...windowed, storage: 'int8' },
        { ...full, storage: 'int8', reusePolicy: 'private' },
      ]),
    ],
    INT8_TOLERANCE,
  ),
);
