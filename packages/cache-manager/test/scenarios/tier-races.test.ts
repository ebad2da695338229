import { expect, test } from 'vitest';
import { checkInvariants } from '../../src/testing/index.ts';
import { full, GRAIN_BYTES, model, Stage, seq } from '../support/stage.ts';

/** Tokens that no other text begins with. */
const text = (name: number, count: number) => seq(count).map((token) => name * 1000 + token);
/** Turns of the microtask queue that the asynchronous calls of these stories take at most. */
const TURNS = 40;

for (const tier of [0, 1]) {
  test(`whenever a step takes room while tier ${tier} becomes smaller, one of them is refused and nothing is lost`, async () => {
    for (let turn = 0; turn < TURNS; turn++) {
      const config = model([full()], { slots: 8, hostSlots: 16, maxUtilForResume: 1 });
      const stage = new Stage({ ...config, tiers: [{ tier: 'device', quota: 2 * GRAIN_BYTES }, ...config.tiers.slice(1)] });
      const pageBytes = stage.manager.storageStatistics(0)[0].slotBytes;
      const waiting = await stage.start();
      expect(waiting.extend(text(1, 28))).toBe(true);
      waiting.suspend();
      const active = await stage.start();
      expect(active.extend(text(2, 4))).toBe(true);
      const resizing = stage.manager.resizeTier(tier, tier === 0 ? GRAIN_BYTES : 4 * pageBytes);
      for (let i = 0; i < turn; i++) await Promise.resolve();
      const grew = active.step(text(2, 60).slice(4));
      checkInvariants(stage.manager);
      const resized = await resizing;
      checkInvariants(stage.manager);
      active.verifyAll();
      expect(resized && grew && tier === 0, `both at turn ${turn}`).toBe(false);
      active.close();
      await stage.manager.settled();
      if (stage.slots(0).total >= 7) expect(await waiting.resume()).toBe(true);
      await stage.finish();
    }
  });
}
