import { BufferwiseError, type CacheConfigInput } from '@bufferwise/core-policy';
import fc from 'fast-check';
import { expect } from 'vitest';
import type { DropPlan, ManagerSnapshot } from '../../src/index.ts';
import { checkInvariants, dropPage } from '../../src/testing/index.ts';
import { anyConfig } from './any-config.ts';
import { checkSnapshot } from './check-snapshot.ts';
import { DeviceFault, FaultyDevice } from './faulty-device.ts';
import type { Player } from './player.ts';
import type { RandomRun } from './random-run.ts';
import { Stage } from './stage.ts';

const MAX_PLAYERS = 5;
const MAX_TOKENS = 30;
/** Why a call may be refused here: a step with scratch that was suspended and left open, several beams, and what comes too late or too early. */
const REFUSALS = ['scratch-in-use', 'several-beams', 'commit-stopped', 'plan-committing'];

const whole = fc.nat(1000);
const anyTokens = (maxLength: number, minLength = 0) => fc.array(fc.constantFrom(0, 0, 0, 1, 2), { minLength, maxLength });

const anyOperation = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      op: fc.constant('open' as const),
      prompt: anyTokens(MAX_TOKENS),
      like: fc.option(whole, { freq: 4 }),
      select: fc.nat(15),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      op: fc.constant('step' as const),
      player: whole,
      tokens: fc.array(anyTokens(8, 8), { minLength: 6, maxLength: 6 }),
      count: fc.integer({ min: 1, max: 8 }),
      spare: fc.constantFrom(0, 0, 1, 4),
      settle: fc.boolean(),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      op: fc.constant('commit' as const),
      player: whole,
      keep: whole,
      snapshot: fc.constantFrom(undefined, false),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ op: fc.constant('beams' as const), player: whole, width: fc.integer({ min: 1, max: 6 }) }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      op: fc.constant('reorder' as const),
      player: whole,
      parents: fc.array(fc.nat(5), { minLength: 1, maxLength: 6 }),
      same: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('keep' as const), player: whole, keep: whole }) },
  { weight: 3, arbitrary: fc.record({ op: fc.constant('fork' as const), player: whole }) },
  {
    weight: 2,
    arbitrary: fc.record({ op: fc.constantFrom('suspend' as const, 'resume' as const, 'resume' as const), player: whole }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constantFrom('stop' as const, 'close' as const, 'plan' as const, 'carryOut' as const),
      player: whole,
    }),
  },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('refuse' as const) }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('lose' as const), like: whole, block: fc.nat(8), group: fc.nat(3) }) },
);
type Operation = typeof anyOperation extends fc.Arbitrary<infer T> ? T : never;
const anyOperations = fc.array(anyOperation, { minLength: 20, maxLength: 60, size: 'max' });

/** Random lives of requests that fork and have beams, with a device that refuses commands now and then. */
export const forkRuns: readonly RandomRun[] = [
  { memory: 'ample memory', sizes: { slots: fc.constant(256) } },
  { memory: 'little memory', sizes: { slots: fc.integer({ min: 2, max: 16 }) } },
  {
    memory: 'little memory and a host behind it',
    sizes: { slots: fc.integer({ min: 4, max: 16 }), hostSlots: fc.constantFrom(4, 12) },
  },
].map(({ memory, sizes }) => ({
  sentence: `with ${memory} beams and forks read exactly their own tokens, nothing leaks, and what says no has changed nothing`,
  property: (tell) =>
    fc.asyncProperty(anyConfig(sizes), anyOperations, async (config, operations) => {
      const run = new Run(config);
      for (const operation of operations) {
        tell();
        await run.apply(operation);
      }
      await run.end();
    }),
}));

class Run {
  readonly #device: FaultyDevice;
  readonly #stage: Stage;
  readonly #players: Player[] = [];
  readonly #plans: DropPlan[] = [];
  /** Everything that was ever computed, to ask for again. */
  readonly #texts: number[][] = [];

  constructor(config: CacheConfigInput) {
    this.#device = new FaultyDevice('execute', 0);
    this.#stage = new Stage(config, this.#device);
  }

  async apply(operation: Operation): Promise<void> {
    if (operation.op === 'open') await this.#open(operation);
    else if (operation.op === 'lose') this.#lose(operation);
    else if (operation.op === 'refuse') this.#device.failNext();
    else if (operation.op === 'carryOut') this.#plans.shift()?.drop();
    else {
      const suited = this.#players.filter(
        ({ kv }) => operation.op === 'close' || (operation.op === 'resume') === (kv.status === 'suspended'),
      );
      if (suited.length > 0) await this.#applyTo(suited[operation.player % suited.length], operation);
    }
    checkInvariants(this.#stage.manager);
    checkSnapshot(this.#stage.manager);
  }

  async end(): Promise<void> {
    for (const plan of this.#plans) plan.drop();
    await this.#stage.finish();
  }

  async #open({ prompt, like, select }: Operation & { op: 'open' }): Promise<void> {
    if (this.#players.length === MAX_PLAYERS) return;
    const known = like === null || this.#texts.length === 0 ? [] : this.#texts[like % this.#texts.length];
    const player = this.#stage.open([...known, ...prompt].slice(0, MAX_TOKENS));
    this.#players.push(player);
    const optionalReuseGroups = player.kv.reuseStatus
      .filter(({ groupId, policy, complete }) => policy === 'optional' && complete && (select & (1 << groupId)) !== 0)
      .map(({ groupId }) => groupId);
    await this.#attempt(() => player.resume({ optionalReuseGroups }));
  }

  async #applyTo(player: Player, operation: Operation): Promise<void> {
    const { kv } = player;
    switch (operation.op) {
      case 'step': {
        const count = Math.min(operation.count, MAX_TOKENS - player.numComputed);
        if (count <= 0) return;
        const tokens = operation.tokens.slice(0, kv.beamWidth).map((each) => each.slice(0, count));
        const spare = Math.min(operation.spare, this.#stage.config.swaScratchReuse?.maxRewindLen ?? operation.spare);
        if (!(await this.#attempt(() => player.stepBeams(tokens, spare)))) return;
        this.#texts.push(...player.texts.map((text) => text as number[]).map((text) => [...text]));
        if (operation.settle) this.#settle(player);
        break;
      }
      case 'commit': {
        this.#settle(player);
        await this.#attempt(() => player.keepBeam(operation.keep % kv.beamWidth));
        if (kv.beamWidth > 1) return;
        await this.#attempt(() => player.commit(undefined, { snapshot: operation.snapshot }));
        break;
      }
      case 'beams':
        this.#settle(player);
        await this.#attempt(() => player.forkBeams(operation.width));
        break;
      case 'reorder': {
        this.#settle(player);
        const parents = operation.parents.map((parent) => parent % kv.beamWidth);
        while (operation.same && parents.length < kv.beamWidth) parents.push(parents[0]);
        if (operation.same) parents.length = kv.beamWidth;
        const free = () => this.#stage.manager.storageStatistics(0).map(({ available }) => available);
        const before = free();
        const done = await this.#attempt(() => player.reorderBeams(parents));
        if (!operation.same) break;
        expect(done, 'a reordering of as many beams').not.toBe(false);
        free().forEach((available, poolGroup) => void expect(available).toBeGreaterThanOrEqual(before[poolGroup]));
        break;
      }
      case 'keep':
        this.#settle(player);
        await this.#attempt(() => player.keepBeam(operation.keep % kv.beamWidth));
        break;
      case 'fork': {
        if (this.#players.length === MAX_PLAYERS) return;
        this.#settle(player);
        const fork = await this.#attempt(() => player.fork());
        if (fork) this.#players.push(fork);
        break;
      }
      case 'suspend':
        player.suspend();
        break;
      case 'resume':
        await this.#attempt(() => player.resume());
        break;
      case 'stop':
        this.#settle(player);
        kv.stopCommitting();
        break;
      case 'plan': {
        const plan = await this.#attempt(() => kv.planCommittedBlockDrop());
        if (plan) this.#plans.push(plan);
        break;
      }
      case 'close':
        player.close();
        this.#players.splice(this.#players.indexOf(player), 1);
        break;
    }
    for (const each of this.#players) {
      if (each.kv.status !== 'active') continue;
      each.verify();
      each.verifyAll();
    }
  }

  #settle(player: Player): void {
    if (player.numComputed > player.kv.historyLength) expect(player.settle(), 'a history that needs no page').toBe(true);
  }

  #lose({ like, block, group }: Operation & { op: 'lose' }): void {
    if (this.#texts.length === 0) return;
    dropPage(this.#stage.manager, {
      tokens: this.#texts[like % this.#texts.length],
      block,
      groupId: group % this.#stage.groups.length,
    });
  }

  /**
   * Does a thing. What says no, with false or null, must have changed nothing, and so must what is refused for one of the reasons that there
   * may be. What throws because the device refuses has changed nothing but what was evicted. Both of these answer undefined.
   */
  async #attempt<T>(call: () => T | Promise<T>): Promise<T | undefined> {
    const { manager } = this.#stage;
    const before = manager.inspect();
    try {
      const answer = await call();
      if (answer === false || answer === null) expect(manager.inspect()).toEqual(before);
      return answer;
    } catch (error) {
      const after = manager.inspect();
      if (BufferwiseError.isInstance(error) && REFUSALS.includes(error.code)) {
        expect(after).toEqual(before);
        return undefined;
      }
      if (!(error instanceof DeviceFault)) throw error;
      expect(after.requests).toEqual(before.requests);
      for (const poolGroup of after.poolGroups.keys()) {
        const room = ({ poolGroups }: ManagerSnapshot) => poolGroups[poolGroup].numFree + poolGroups[poolGroup].queue.length;
        expect(room(after), 'slots that anybody can have').toBe(room(before));
      }
      return undefined;
    }
  }
}
