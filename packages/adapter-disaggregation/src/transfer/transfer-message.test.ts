import { slidingWindow, ssmState } from '@bufferwise/core-policy';
import { expect, test } from 'vitest';
import type { LayoutDescription } from './transfer-layout.ts';
import { decodeMessage, encodeMessage, type TransferMessage } from './transfer-message.ts';

const LAYOUT: LayoutDescription = {
  tokensPerBlock: 4,
  groups: [
    { lifecycle: ssmState(), buffers: [[1, 'ssm_state', 16, 1]] },
    { lifecycle: slidingWindow(6, { numSinkBlocks: 1 }), buffers: [[0, 'key', 64, 2, 'f16', 2, 4, 4]] },
  ],
};

const MESSAGES: readonly TransferMessage[] = [
  { kind: 'offer', handover: 7, layout: LAYOUT, request: { model: 'm', prompt: 'ab', note: '{}' }, partBytes: 64 },
  { kind: 'accept', groups: [{ endpoint: 4, coverage: [[0, 4]] }], layout: LAYOUT, partBytes: 96 },
  { kind: 'refuse', reason: 'too long' },
  { kind: 'done' },
  { kind: 'missing', pages: [[0, 3]] },
  { kind: 'complete' },
  { kind: 'renew' },
  { kind: 'abort', reason: 'the client left' },
  { kind: 'aborted' },
];

test.each(MESSAGES)('$kind comes as it went', (message) => {
  expect(decodeMessage(encodeMessage(message))).toEqual(message);
});

test('whatever else comes is refused, and nothing else is thrown', () => {
  const rounds = Number(process.env.BUFFERWISE_FUZZ ?? 100_000) / 5;
  let state = 7;
  const next = (below: number) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return (state >>> 8) % below;
  };
  for (let round = 0; round < rounds; round++) {
    const bytes = encodeMessage(MESSAGES[next(MESSAGES.length)]);
    for (let flips = 1 + next(3); flips > 0; flips--) bytes[next(bytes.length)] = next(256);
    try {
      decodeMessage(next(4) === 0 ? bytes.subarray(0, next(bytes.length)) : bytes);
    } catch (error) {
      if ((error as { code?: string }).code !== 'invalid-transfer-message') throw error;
    }
  }
  for (const value of [null, 1, [], {}, { kind: 'toString' }, { kind: 'accept', groups: [{ endpoint: -1, coverage: [] }] }])
    expect(() => decodeMessage(new TextEncoder().encode(JSON.stringify(value)))).toThrowError(
      expect.objectContaining({ code: 'invalid-transfer-message' }),
    );
});
