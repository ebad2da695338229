import { BufferwiseError, type CacheConfigInput, type LayerGroupId } from '@bufferwise/core-policy';
import { describe, expect, test } from 'vitest';
import { checkInvariants } from '../../src/testing/index.ts';
import { stateOf } from '../../src/testing/manager-registry.ts';
import type { Player } from '../support/player.ts';
import { CALLS, type Call, Sabotage, SabotagedDevice, SabotagedStore, Saboteur } from '../support/saboteur.ts';
import { full, GRAIN_BYTES, model, recurrent, Stage, seq, windowed } from '../support/stage.ts';

/** More calls of one kind than any story makes. */
const MANY = 400;
/** Tokens of one step at most: who lost much does not need room for all of it at once. */
const STEP = 16;
/** Times that a thing is tried again: one fault may show in it, and what the fault cost once more. */
const TRIES = 4;
/** Milliseconds: far more than any story takes, as a busy machine is no failure. */
const TIMEOUT = 240_000;

/** Tokens that no other text begins with. */
const text = (name: number, count: number) => seq(count).map((token) => name * 1000 + token);

/** A stage on which one call fails, and how things are done there: whatever says no has changed nothing, and works the next time. */
class Rig {
  readonly saboteur: Saboteur;
  readonly stage: Stage;
  readonly #players: Player[] = [];

  constructor(config: CacheConfigInput, saboteur: Saboteur, stagingBytes?: number) {
    this.saboteur = saboteur;
    this.stage = new Stage(config, new SabotagedDevice(saboteur), { disk: new SabotagedStore(saboteur), stagingBytes });
    saboteur.arm();
  }

  /** Does a thing, again when it is refused. */
  async act<T>(call: () => T | Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      const before = this.#visible();
      const lost = this.#numLost();
      let answer: T | undefined;
      try {
        answer = await call();
      } catch (error) {
        if (!(error instanceof Sabotage)) throw error;
      }
      checkInvariants(this.stage.manager);
      if (answer !== undefined && answer !== false && answer !== null) return answer;
      if (this.#numLost() === lost) expect(this.#visible()).toEqual(before);
      expect(tries, `times that ${String(call)} was refused`).toBeLessThan(TRIES);
      await this.settle();
    }
  }

  /** Opens a request, takes it onto the device, and lets it compute a text and commit it. */
  async serve(tokens: readonly number[], options: { end?: boolean; select?: number[] } = {}): Promise<Player> {
    const player = this.open(tokens);
    await this.back(player, tokens, options);
    return player;
  }

  open(tokens: readonly number[]): Player {
    const player = this.stage.open(tokens);
    this.#players.push(player);
    return player;
  }

  /** Resumes a request and lets it compute what it lacks of a text. What it lost it computes again. */
  async back(player: Player, tokens: readonly number[], options: { end?: boolean; select?: number[] } = {}): Promise<void> {
    await this.resume(player, options.select);
    await this.compute(player, tokens, options.end);
  }

  /** Resumes a request. One that lost pages begins again first. */
  async resume(player: Player, select?: number[]): Promise<void> {
    await this.act(async () => {
      const isFirst = !player.hasResumed;
      const optionalReuseGroups = select?.filter((id) => player.kv.reuseStatus[id].complete) as LayerGroupId[];
      return beginningAgain(player, () => player.resume(isFirst ? { optionalReuseGroups } : {}));
    });
  }

  /** Lets an active request compute a text as far as it has not, and commit it. */
  async compute(player: Player, tokens: readonly number[], end = false): Promise<void> {
    while (player.numComputed < tokens.length) {
      const next = tokens.slice(player.numComputed, player.numComputed + STEP);
      await this.act(() => player.step(next));
      const isEnd = end && player.numComputed === tokens.length;
      await this.act(() => player.commit(undefined, { end: isEnd }) ?? true);
    }
    if (player.kv.numCommittedTokens < player.numComputed) await this.act(() => player.commit(undefined, { end }) ?? true);
    player.verify();
  }

  /** Waits for everything under way; what could not be done is told there, once. */
  async settle(): Promise<void> {
    for (let tries = 1; ; tries++) {
      const error = await this.stage.manager.settled().catch((reason: unknown) => reason);
      if (error === undefined) break;
      if (!(error instanceof Sabotage) || tries === TRIES) throw error;
    }
    const { storage } = stateOf(this.stage.manager);
    expect(storage.staging.free, 'bytes that may set out when nothing is under way').toBe(storage.staging.limit);
    expect([storage.boardings.size, storage.landings.any]).toEqual([0, false]);
  }

  #visible(): unknown {
    const { manager, groups } = this.stage;
    const requests = this.#players.map(({ kv }) => ({
      lengths: [kv.status, kv.numCommittedTokens, kv.historyLength, kv.capacity, kv.status === 'closed' ? 0 : kv.beamWidth],
      status: kv.reuseStatus,
      depths: kv.matchDepths,
      pages: groups.map(({ kind }, id) =>
        kind === 'ssm' ? kv.ssmBlockBaseIndex(id as LayerGroupId) : [...kv.basePageIndices(id as LayerGroupId)],
      ),
      scratch: groups.map((_, id) => kv.scratch(id as LayerGroupId)),
    }));
    return structuredClone({ requests, room: manager.storageStatistics(0).map(({ available }) => available) });
  }

  #numLost(): number {
    return this.stage.manager.statistics().groups.reduce((sum, { lostPages }) => sum + lostPages, 0);
  }
}

/** Asks a request for something; false when it had lost pages, which it has taken note of then. */
async function beginningAgain(player: Player, ask: () => Promise<boolean>): Promise<boolean> {
  try {
    return await ask();
  } catch (error) {
    if (!BufferwiseError.isInstance(error) || error.code !== 'pages-lost') throw error;
    player.beginAgain();
    return false;
  }
}

interface Story {
  config: CacheConfigInput;
  /** Kinds of calls that the story makes, so that none is tried in vain. */
  makes: readonly Call[];
  stagingBytes?: number;
  tell(rig: Rig): Promise<void>;
}

const small = { maxUtilForResume: 1, tokensPerBlock: 4 };

const stories: Record<string, Story> = {
  'a prefix that others continue, whole and in part': {
    config: model([full(), windowed(6, 'optional'), windowed(5, 'private'), recurrent(), recurrent('optional')], small),
    makes: ['execute', 'landed'],
    async tell(rig) {
      const donor = await rig.serve(text(1, 10));
      await rig.compute(donor, text(1, 14));
      donor.close();
      const selecting = await rig.serve([...text(1, 14), 7, 8, 9], { select: [1, 4] });
      const declining = await rig.serve([...text(1, 12), 5]);
      selecting.suspend();
      await rig.back(selecting, [...text(1, 14), 7, 8, 9, 10, 11]);
      await rig.act(() => declining.kv.stopCommitting() ?? true);
      await rig.act(() => declining.step([6, 7]));
      declining.verify();
    },
  },
  'windows and scratch in a small pool': {
    config: model([full(), windowed(8), windowed(4, 'private')], {
      ...small,
      slots: [16, 8, 12],
      hostSlots: 20,
      swaScratchReuse: { maxRewindLen: 2 },
    }),
    makes: ['read', 'write', 'reserve', 'landed'],
    async tell(rig) {
      const first = await rig.serve(text(1, 24));
      first.suspend();
      const second = await rig.serve(text(2, 30));
      second.suspend();
      await rig.settle();
      await rig.back(first, text(1, 38));
      first.suspend();
      await rig.back(second, text(2, 41));
      second.close();
      await rig.back(first, text(1, 44));
    },
  },
  'snapshots of recurrent state that push each other down': {
    config: model([full(), recurrent(), recurrent('private')], { ...small, slots: [24, 4, 4], hostSlots: 2, diskSlots: 24 }),
    makes: ['execute', 'read', 'write', 'put', 'get', 'damage', 'reserve', 'list'],
    async tell(rig) {
      const first = await rig.serve(text(1, 5));
      for (const count of [9, 14, 19, 22]) await rig.compute(first, text(1, count));
      first.suspend();
      const second = await rig.serve(text(2, 6));
      for (const count of [11, 16, 21]) await rig.compute(second, text(2, count));
      second.suspend();
      await rig.settle();
      const third = await rig.serve([...text(1, 15), 3]);
      third.close();
      await rig.back(first, text(1, 30));
      await rig.back(second, text(2, 26));
    },
  },
  'beams and forks that give way': {
    config: model([full(), windowed(6), recurrent(), recurrent('private')], {
      ...small,
      slots: [16, 16, 8, 8],
      hostSlots: 24,
    }),
    makes: ['execute', 'read', 'write', 'reserve'],
    async tell(rig) {
      const player = await rig.serve(text(1, 10));
      const fork = (await rig.act(() => player.fork())) as Player;
      await rig.act(() => player.forkBeams(3));
      await rig.act(() => player.stepBeams([[1], [2], [3]]));
      await rig.act(() => player.settle());
      await rig.act(() => player.reorderBeams([2, 2, 0]));
      player.suspend();
      fork.suspend();
      const hog = await rig.serve(text(2, 44));
      await rig.settle();
      hog.close();
      await rig.resume(player);
      if (player.kv.beamWidth > 1) await rig.act(() => player.keepBeam(1) ?? true);
      await rig.compute(player, [...(player.text as number[]), 5, 6]);
      await rig.back(fork, text(1, 13));
    },
  },
  'three requests through device, host and disk': {
    config: model([full(), windowed(4), recurrent()], { ...small, slots: [6, 6, 2], hostSlots: 3, diskSlots: 24 }),
    makes: ['read', 'write', 'put', 'get', 'damage', 'delete', 'list', 'reserve'],
    async tell(rig) {
      const players = [];
      for (const name of [1, 2, 3]) {
        const player = await rig.serve(text(name, 16));
        player.suspend();
        players.push(player);
        await rig.settle();
      }
      for (const [index, player] of players.entries()) {
        await rig.back(player, text(index + 1, 18));
        player.suspend();
      }
      await rig.settle();
    },
  },
  'the same with room for one page under way': {
    config: model([full(), recurrent()], { ...small, slots: [6, 2], hostSlots: 3, diskSlots: 24 }),
    makes: ['read', 'write', 'put', 'get'],
    stagingBytes: 1,
    async tell(rig) {
      const players = [];
      for (const name of [1, 2, 3]) {
        const player = rig.open(text(name, 12));
        await rig.back(player, []);
        for (const count of [4, 8, 12]) {
          await rig.compute(player, text(name, count));
          await rig.settle();
        }
        player.suspend();
        players.push(player);
        await rig.settle();
      }
      for (const [index, player] of players.entries()) {
        await rig.back(player, text(index + 1, 13));
        player.suspend();
        await rig.settle();
      }
    },
  },
  'a device that is lost': {
    config: model([full(), recurrent()], { ...small, slots: [8, 3], hostSlots: 8 }),
    makes: ['createPool', 'ready', 'execute', 'read', 'write'],
    async tell(rig) {
      const first = await rig.serve(text(1, 4));
      for (const count of [8, 12, 16, 20]) await rig.compute(first, text(1, count));
      first.suspend();
      const second = await rig.serve(text(2, 28));
      await rig.settle();
      for (let loss = 0; loss < 2; loss++) {
        rig.stage.manager.deviceLost();
        for (let tries = 1; ; tries++) {
          expect(tries).toBeLessThan(TRIES);
          try {
            await rig.stage.restoreDevice(new SabotagedDevice(rig.saboteur));
            break;
          } catch (error) {
            if (!(error instanceof Sabotage)) throw error;
            checkInvariants(rig.stage.manager);
            await expect(second.resume()).rejects.toMatchObject({ code: 'device-lost' });
          }
        }
        await rig.back(first, text(1, 24));
        first.suspend();
        await rig.back(second, text(2, 28));
        if (loss === 0) second.suspend();
      }
    },
  },
  'tiers that change their size': {
    config: {
      ...model([full(), windowed(8)], { ...small, slots: 8, hostSlots: 12, diskSlots: 40 }),
      tiers: [
        { tier: 'device', quota: 4 * GRAIN_BYTES },
        { tier: 'host', quota: 6 * GRAIN_BYTES },
        { tier: 'disk', quota: 10 * GRAIN_BYTES },
      ],
    },
    makes: ['createPool', 'ready', 'execute', 'read', 'write', 'put', 'get', 'reserve'],
    async tell(rig) {
      const { manager } = rig.stage;
      const first = await rig.serve(text(1, 30));
      first.suspend();
      const second = await rig.serve(text(2, 26));
      await rig.act(() => manager.resizeTier(0, 2 * GRAIN_BYTES));
      second.verifyAll();
      await rig.compute(second, text(2, 28));
      await rig.act(() => manager.resizeTier(1, 2 * GRAIN_BYTES));
      second.suspend();
      await rig.back(first, text(1, 31));
      first.suspend();
      await rig.settle();
      await rig.act(() => manager.resizeTier(2, 6 * GRAIN_BYTES));
      await rig.act(() => manager.resizeTier(0, 6 * GRAIN_BYTES));
      await rig.back(second, text(2, 30));
      await rig.back(first, text(1, 33));
      second.suspend();
      await rig.act(() => manager.resizeTier(0, 4 * GRAIN_BYTES));
      await rig.act(() => manager.resizeTier(1, 6 * GRAIN_BYTES));
      first.verifyAll();
      first.suspend();
      await rig.back(second, text(2, 31));
    },
  },
  'pages that are fetched in advance': {
    config: model([full(), recurrent()], { ...small, slots: [8, 2], hostSlots: 3, diskSlots: 24 }),
    makes: ['read', 'write', 'put', 'get', 'damage', 'delete'],
    async tell(rig) {
      const players = [];
      for (const name of [1, 2, 3]) {
        const player = await rig.serve(text(name, 28));
        player.suspend();
        players.push(player);
        await rig.settle();
      }
      const [first, second, third] = players;
      second.close();
      const fetch = (player: Player, tier: number) => rig.act(() => beginningAgain(player, () => player.kv.prefetch(tier)));
      await fetch(first, 1);
      third.close();
      await fetch(first, 0);
      await rig.back(first, text(1, 32));
    },
  },
  'ends that are dropped by plan': {
    config: model([full(), windowed(4), recurrent()], { ...small, slots: [10, 10, 3], hostSlots: 16 }),
    makes: ['execute', 'read', 'reserve'],
    async tell(rig) {
      const first = await rig.serve(text(1, 14));
      first.kv.stopCommitting();
      const plan = first.kv.planCommittedBlockDrop();
      first.close();
      const second = await rig.serve(text(2, 32));
      plan?.drop();
      checkInvariants(rig.stage.manager);
      await rig.settle();
      second.close();
      const third = await rig.serve([...text(1, 14), 5]);
      third.verifyAll();
    },
  },
  'prefixes that are pinned': {
    config: model([full(), windowed(4), recurrent()], { ...small, slots: [10, 10, 6], hostSlots: 8, diskSlots: 8 }),
    makes: ['execute', 'read', 'write', 'reserve'],
    async tell(rig) {
      const donor = await rig.serve(text(1, 12));
      donor.close();
      const pin = rig.stage.manager.pin(text(1, 12));
      for (const name of [2, 3]) (await rig.serve(text(name, 30))).close();
      await rig.settle();
      const reader = await rig.serve([...text(1, 12), 9, 9]);
      pin?.release();
      reader.suspend();
      (await rig.serve(text(4, 30))).close();
      await rig.back(reader, [...text(1, 12), 9, 9, 9]);
    },
  },
  'requests that close, and a manager that closes, in the middle of a way back': {
    config: model([full(), recurrent()], { ...small, slots: [8, 2], hostSlots: 3, diskSlots: 24 }),
    makes: ['read', 'write', 'get', 'put'],
    async tell(rig) {
      const players = [];
      for (const name of [1, 2, 3]) {
        const player = await rig.serve(text(name, 28));
        player.suspend();
        players.push(player);
        await rig.settle();
      }
      const [first, second, third] = players;
      third.close();
      for (const [player, ticks] of [
        [first, 200],
        [second, 1],
      ] as const) {
        const going = [player.kv.resume(), player.kv.prefetch(1)];
        for (let i = 0; i < ticks; i++) await Promise.resolve();
        player.close();
        for (const answer of await Promise.allSettled(going)) {
          if (answer.status === 'rejected' && !(answer.reason instanceof Sabotage))
            expect(answer.reason.code).toMatch(/^(resume|prefetch)-(closed|active)$|^pages-lost$/);
        }
      }
      await rig.settle();
    },
  },
};

describe.each(Object.entries(stories))('%s', (_, { config, makes, stagingBytes, tell }) => {
  test.each(CALLS.filter((kind) => makes.includes(kind)))(
    'survive that any one %s fails',
    async (kind) => {
      let at = 1;
      for (; at < MANY; at++) {
        const saboteur = new Saboteur(kind, at);
        const unwatch = saboteur.watchHostMemory();
        try {
          const rig = new Rig(config, saboteur, stagingBytes);
          await tell(rig);
          await rig.settle();
          await rig.stage.finish();
        } catch (error) {
          throw new Error(`with ${kind} number ${at} failing`, { cause: error });
        } finally {
          unwatch();
        }
        if (!saboteur.hasStruck) break;
      }
      expect(at, `calls of ${kind}`).toBeGreaterThan(1);
      expect(at, 'a story without end').toBeLessThan(MANY);
    },
    TIMEOUT,
  );
});
