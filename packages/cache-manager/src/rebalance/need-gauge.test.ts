import { expect, test } from 'vitest';
import { NeedGauge, NUM_STEPS } from './need-gauge.ts';

function gaugeOf(stepSlots: number): NeedGauge {
  const gauge = new NeedGauge();
  gauge.restart(stepSlots);
  return gauge;
}

test('what is missed is a gain of the growth that would have kept it, once', () => {
  const gauge = gaugeOf(10);
  for (let hash = 1; hash <= 30; hash++) gauge.left(hash);
  expect([gauge.missed(30, 5), gauge.missed(21, 7), gauge.missed(20, 1), gauge.missed(30, 5), gauge.missed(99, 5)]).toEqual([
    true,
    true,
    true,
    false,
    false,
  ]);
  gauge.nextRequest();
  expect([...gauge.gains].slice(0, 3)).toEqual([12, 1, 0]);
  expect([gauge.evicted, gauge.returned]).toEqual([30, 3]);
});

test('what comes back for one request counts as one observation', () => {
  const [together, apart] = [gaugeOf(10), gaugeOf(10)];
  for (const gauge of [together, apart]) for (let hash = 1; hash <= 4; hash++) gauge.left(hash);
  for (let hash = 1; hash <= 4; hash++) {
    together.missed(hash, 2);
    apart.missed(hash, 2);
    apart.nextRequest();
  }
  together.nextRequest();
  expect([together.gains[0], together.variances[0]]).toEqual([8, 64]);
  expect([apart.gains[0], apart.variances[0]]).toEqual([8, 16]);
});

test('of a large pool a sample is remembered, and stands for the whole', () => {
  const stepSlots = 1 << 15;
  const gauge = gaugeOf(stepSlots);
  const hashes = Array.from({ length: stepSlots }, (_, i) => Math.imul(i + 1, 0x9e3779b1));
  for (const hash of hashes) gauge.left(hash);
  for (const hash of hashes) gauge.missed(hash, 3);
  gauge.nextRequest();
  const sum = gauge.gains.reduce((all, gain) => all + gain, 0);
  expect(gauge.returned).toBeLessThanOrEqual(1 << 14);
  expect(sum / (3 * stepSlots)).toBeGreaterThan(0.9);
  expect(sum / (3 * stepSlots)).toBeLessThan(1.1);
});

test('what is too long ago for any step is no gain, and halving keeps the proportions', () => {
  const gauge = gaugeOf(8);
  for (let hash = 1; hash <= 8 * NUM_STEPS + 1; hash++) gauge.left(hash);
  gauge.missed(1, 100);
  gauge.missed(8 * NUM_STEPS, 6);
  gauge.nextRequest();
  expect(gauge.gains.reduce((all, gain) => all + gain, 0)).toBe(6);
  gauge.fade();
  expect([gauge.gains[0], gauge.variances[0], gauge.evicted]).toEqual([3, 18, (8 * NUM_STEPS + 1) / 2]);
  gauge.restart(8);
  expect([gauge.gains[0], gauge.evicted, gauge.missed(8 * NUM_STEPS - 1, 1)]).toEqual([0, 0, false]);
});
