import { describe, expect, test } from 'vitest';
import { checkInvariants, dropPage } from '../../src/testing/index.ts';
import { stateOf } from '../../src/testing/manager-registry.ts';
import type { Player } from '../support/player.ts';
import { full, GRAIN_BYTES, model, Stage, seq, windowed } from '../support/stage.ts';

/** Tokens that no other text begins with. */
const text = (name: number, count: number) => seq(count).map((token) => name * 1000 + token);
/** Turns of the microtask queue that the asynchronous calls of these stories take at most. */
const TURNS = 40;
/** So many of them are tried one by one, as most of what happens does at first; then every fifth. */
const FINE = 8;
/** Milliseconds: far more than any of them takes, as a busy machine is no failure. */
const TIMEOUT = 120_000;

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

// ── Everything that waits, against everything that comes in between ──────────────────────────────────────────────────

const PAGE_BYTES = GRAIN_BYTES / 8;

/** Three tiers with something in each: two requests that lie in the host and on the disk, one that is active, a prefix. */
class Scene {
  readonly stage: Stage;
  /** Suspended; parts of each are in colder tiers. */
  first!: Player;
  second!: Player;
  active!: Player;

  constructor() {
    const config = model([full(), windowed(8)], { slots: 8, hostSlots: 10, diskSlots: 40, maxUtilForResume: 1 });
    const [, host, disk] = config.tiers;
    this.stage = new Stage({ ...config, tiers: [{ tier: 'device', quota: 4 * GRAIN_BYTES }, host, disk] });
  }

  async begin(): Promise<void> {
    const { stage } = this;
    await stage.donate(text(9, 12), [12]);
    this.first = await stage.start();
    expect(this.first.extend(text(1, 40))).toBe(true);
    this.first.suspend();
    this.second = await stage.start();
    expect(this.second.extend(text(2, 60))).toBe(true);
    this.second.suspend();
    await stage.manager.settled();
    this.active = await stage.start();
    expect(this.active.extend(text(3, 24))).toBe(true);
    await stage.manager.settled();
  }

  /** Everybody who is still there goes on to the end. */
  async end(): Promise<void> {
    const { stage } = this;
    checkInvariants(stage.manager);
    await stage.manager.settled();
    if (stateOf(stage.manager).storage.device === null) await stage.restoreDevice();
    for (const player of [this.active, this.first, this.second]) {
      if (player.kv.status === 'closed') continue;
      if (player.kv.status === 'suspended') {
        let answer = await player.resume().catch((error: unknown) => error);
        if ((answer as { code?: string }).code === 'pages-lost') {
          player.beginAgain();
          answer = await player.resume();
        }
        if (answer !== true && answer !== false) throw answer;
      }
      if (player.kv.status === 'active') player.verifyAll();
      player.close();
    }
    await stage.finish();
  }
}

const waits: Record<string, (scene: Scene) => Promise<unknown>> = {
  'a request comes back': ({ first }) => first.resume(),
  'pages are fetched into the host': ({ second }) => second.kv.prefetch(1),
  'the device becomes smaller': ({ stage }) => stage.manager.resizeTier(0, 2 * GRAIN_BYTES),
  'the device becomes larger': ({ stage }) => stage.manager.resizeTier(0, 6 * GRAIN_BYTES),
  'the host becomes smaller': ({ stage }) => stage.manager.resizeTier(1, 8 * PAGE_BYTES),
  'the disk becomes smaller': ({ stage }) => stage.manager.resizeTier(2, 24 * PAGE_BYTES),
};

const intrusions: Record<string, (scene: Scene) => unknown> = {
  'a step takes room': ({ active }) => active.step(text(3, 40).slice(24)),
  'a request gives way': ({ active }) => active.suspend(),
  'it closes': ({ first }) => first.close(),
  'the other closes': ({ second }) => second.close(),
  'the device is lost': ({ stage }) => stage.manager.deviceLost(),
  'the device is replaced': ({ stage }) => stage.restoreDevice(),
  'another comes back': ({ second }) => second.resume().catch((error: unknown) => error),
  'a prefix is pinned': ({ stage }) => stage.manager.pin(text(9, 12))?.release(),
  'pages are dropped': ({ stage }) =>
    [0, 1, 2].map((block) => dropPage(stage.manager, { tokens: text(1, 40), block: 9 - block, groupId: block % 2 })),
  'a request is opened on what is on its way': ({ stage }) => stage.open(text(1, 40)).close(),
};

describe.each(Object.keys(waits))('while %s', (wait) => {
  test.each(Object.keys(intrusions))(
    '%s, at any moment: nothing is lost, leaked or mixed up',
    async (intrusion) => {
      let isOver = false;
      for (let turn = 0; turn < TURNS && !isOver; turn += turn < FINE ? 1 : 5) {
        const scene = new Scene();
        await scene.begin();
        const waiting = waits[wait](scene)
          .catch((error: unknown) => error)
          .then((answer) => {
            isOver = true;
            return answer;
          });
        for (let i = 0; i < turn; i++) await Promise.resolve();
        const wasOver: boolean = isOver;
        const intruding = intrusions[intrusion](scene);
        checkInvariants(scene.stage.manager);
        await intruding;
        const answer = await waiting;
        isOver = wasOver;
        const { code } = answer as { code?: string };
        if (typeof answer !== 'boolean')
          expect(code, String(answer)).toMatch(/^(pages-lost|device-lost|(resume|prefetch)-(closed|active))$/);
        if (code === 'pages-lost')
          for (const player of [scene.first, scene.second]) if (player.kv.lostTokens > 0) player.beginAgain();
        await scene.end();
      }
    },
    TIMEOUT,
  );
});
