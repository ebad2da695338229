import { BufferwiseError, type CacheConfigInput, type LayerGroupId } from '@bufferwise/core-policy';
import { ModelRefusal, type RequestModel, type ReuseModel } from '@bufferwise-internal/test-kit';
import fc from 'fast-check';
import { expect } from 'vitest';
import {
  type CommitOptions,
  MemoryTierStore,
  type PrefixPin,
  type PriorityFn,
  type ResumeOptions,
  type ReuseScope,
} from '../../src/index.ts';
import { checkInvariants, dropPage } from '../../src/testing/index.ts';
import { anyConfig } from './any-config.ts';
import { FailingStore, UnreadableDevice } from './failing-tiers.ts';
import { moveSlots } from './move-slots.ts';
import { oracleOf, scopeName } from './oracle.ts';
import type { Player } from './player.ts';
import { RandomPolicy } from './random-policy.ts';
import type { RandomRun } from './random-run.ts';
import { GRAIN_BYTES, Stage } from './stage.ts';
import type { Token } from './stamp.ts';

const MAX_PLAYERS = 4;
const MAX_TOKENS = 28;

// ── What is tried ────────────────────────────────────────────────────────────────────────────────────────────────────

/** Few different tokens, so that prompts have much in common. Two digests that begin alike, and an id that looks like both. */
const TOKENS: readonly Token[] = [0, 1, digest(1), digest(2), 0x07070707];

function digest(last: number): Uint8Array {
  const bytes = new Uint8Array(32).fill(7);
  bytes[31] = last;
  return bytes;
}

const anyTokens = (maxLength: number) =>
  fc.array(fc.constantFrom(0, 0, 0, 0, 1, 1, 2, 3, 4), { maxLength }).map((indices) => indices.map((index) => TOKENS[index]));

const SCOPES: readonly (ReuseScope | undefined)[] = [undefined, undefined, undefined, { loraId: 7 }, { salt: 7n }];

type PriorityKind = 'none' | 'byBlock' | 'throws' | 'nonsense';

const whole = fc.nat(1000);

/** A prompt of its own, or mostly one that begins like something computed before. */
const anyPrompt = {
  prompt: anyTokens(MAX_TOKENS),
  like: fc.option(whole, { freq: 4 }),
  scope: fc.nat(4),
};
const anyStep = fc.record({
  op: fc.constant('step' as const),
  player: whole,
  tokens: anyTokens(12),
  spare: fc.constantFrom(0, 0, 0, 1, 5),
  again: fc.constantFrom(false, false, true),
});
const anyCommit = fc.record({
  op: fc.constant('commit' as const),
  player: whole,
  count: fc.option(whole, { freq: 1 }),
  end: fc.constantFrom(false, false, false, false, false, true),
  snapshot: fc.constantFrom(undefined, undefined, true, false),
});
const anySelection = { select: fc.option(fc.nat(15), { freq: 3 }), rebuild: fc.option(fc.nat(15)) };
const anyOpening = {
  ...anyPrompt,
  ...anySelection,
  priority: fc.constantFrom<PriorityKind>('none', 'none', 'byBlock', 'byBlock', 'throws', 'nonsense'),
  retention: fc.array(
    fc.record({
      begin: fc.nat(16),
      end: fc.constantFrom(undefined, undefined, 20, 28),
      priority: fc.constantFrom(0, 20, 35, 60, 100),
      durationMs: fc.constantFrom(undefined, 1, 5, 40),
    }),
    { maxLength: 2 },
  ),
};

const anyOperation = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      op: fc.constant('serve' as const),
      ...anyOpening,
      steps: fc.array(fc.tuple(anyStep, anyCommit), { maxLength: 4 }),
      close: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('open' as const), ...anyOpening }) },
  { weight: 3, arbitrary: fc.record({ op: fc.constant('resume' as const), player: whole, ...anySelection }) },
  { weight: 6, arbitrary: anyStep },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('settle' as const), player: whole, keep: whole, shrink: fc.boolean() }) },
  { weight: 5, arbitrary: anyCommit },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('suspend' as const), player: whole }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constantFrom('stop' as const, 'close' as const), player: whole }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('probe' as const), ...anyPrompt }) },
  { weight: 3, arbitrary: fc.record({ op: fc.constant('drop' as const), ...anyPrompt, block: fc.nat(8), group: fc.nat(3) }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('misuse' as const), player: whole, kind: fc.nat(9) }) },
);
/** What a manager with little memory is asked besides. */
const anyKeeping = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ op: fc.constant('pin' as const), ...anyPrompt, durationMs: fc.constantFrom(undefined, 1, 10, 40) }),
  },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('unpin' as const), pin: whole }) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('tick' as const), ms: fc.constantFrom(1, 5, 20) }) },
);
/** What only a manager with colder tiers is asked, or asked to bear. */
const anyTierOperation = fc.oneof(
  { weight: 4, arbitrary: fc.record({ op: fc.constant('prefetch' as const), player: whole, tier: fc.nat(2) }) },
  { weight: 4, arbitrary: fc.record({ op: fc.constant('resumeAll' as const), meanwhile: whole }) },
  { weight: 4, arbitrary: fc.record({ op: fc.constant('wait' as const) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      op: fc.constant('resizeTier' as const),
      tier: fc.nat(2),
      share: fc.constantFrom(0.3, 0.6, 1, 1.5, 3),
      meanwhile: whole,
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      op: fc.constant('rebalance' as const),
      tier: fc.nat(2),
      from: fc.nat(3),
      to: fc.nat(3),
      share: fc.constantFrom(0.1, 0.5, 1),
      meanwhile: whole,
    }),
  },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('loseDevice' as const), meanwhile: whole }) },
);
const anyTieredConfig = anyConfig({
  // Few slots, for pressure, but not so few that pages are so large that moving them takes all the time.
  slots: fc.integer({ min: 4, max: 16 }),
  hostSlots: fc.constantFrom(undefined, 2, 6, 12),
  diskSlots: fc.constantFrom(undefined, 4, 16),
});
const anyTieredOperations = fc.array(
  fc.oneof(
    { weight: 8, arbitrary: anyOperation },
    { weight: 2, arbitrary: anyTierOperation },
    { weight: 1, arbitrary: anyKeeping },
  ),
  { minLength: 20, maxLength: 60, size: 'max' },
);
/** Which page leaves first: as we choose, or as chance does that follows from a seed. */
const anyEviction = fc.oneof(fc.constantFrom('lru' as const, 'cost-aware' as const), fc.nat());
/** Pages that may be under way at a time. */
const anyStaging = fc.constantFrom(1, 3, 100);

type Operation = typeof anyOperation | typeof anyKeeping | typeof anyTierOperation extends fc.Arbitrary<infer T> ? T : never;
const anyOperationsInLittle = fc.array(fc.oneof({ weight: 8, arbitrary: anyOperation }, { weight: 1, arbitrary: anyKeeping }), {
  minLength: 20,
  maxLength: 60,
  size: 'max',
});
const anyOperations = fc.array(anyOperation, { minLength: 20, maxLength: 60, size: 'max' });

/** Random lives of a manager: on a config, each operation after the other, then closed and forgotten. */
export const managerRuns: readonly RandomRun[] = [
  {
    sentence:
      'with ample memory a manager does what the slow and obvious rules say, and every page holds what its reader expects',
    property: (tell) =>
      fc.asyncProperty(anyConfig({ slots: fc.constant(1024) }), anyOperations, (config, operations) =>
        new Run(config, { ample: true }).live(operations, tell),
      ),
  },
  {
    sentence: 'with little memory nothing is lost, leaked or mixed up, and what says false or throws has changed nothing',
    property: (tell) =>
      fc.asyncProperty(
        anyConfig({ slots: fc.integer({ min: 2, max: 12 }) }),
        anyOperationsInLittle,
        anyEviction,
        (config, operations, eviction) => new Run(config, { ample: false, eviction }).live(operations, tell),
      ),
  },
  {
    sentence: 'with colder tiers a page holds what its reader expects, wherever it has been meanwhile',
    property: (tell) =>
      fc.asyncProperty(
        anyTieredConfig,
        anyTieredOperations,
        anyStaging,
        anyEviction,
        (config, operations, stagingPages, eviction) =>
          new Run(config, { ample: false, stagingPages, eviction }).live(operations, tell),
      ),
  },
  {
    sentence: 'a read, a write or a page that fails costs those time who need it, and nobody anything else',
    property: (tell) =>
      fc.asyncProperty(
        anyTieredConfig,
        anyTieredOperations,
        anyStaging,
        anyEviction,
        fc.nat(),
        (config, operations, stagingPages, eviction, faults) =>
          new Run(config, { ample: false, stagingPages, eviction, faults }).live(operations, tell),
      ),
  },
];

// ── How it is run ────────────────────────────────────────────────────────────────────────────────────────────────────

class PriorityFailure extends Error {}

interface Cast {
  player: Player;
  prompt: readonly Token[];
  scope: ReuseScope | undefined;
  /** What the rules say of the same request; only with ample memory. */
  model: RequestModel | undefined;
  ended: boolean;
}

class Run {
  readonly #stage: Stage;
  readonly #oracle: ReuseModel | undefined;
  readonly #cast: Cast[] = [];
  /** Everything that was ever computed, to ask for again. */
  readonly #texts: { tokens: readonly Token[]; scope: ReuseScope | undefined }[] = [];
  /** Pins that were not released, and how much of their prefix can still be matched. */
  readonly #pins: { pin: PrefixPin; tokens: readonly Token[]; scope: ReuseScope | undefined; matched: number }[] = [];
  #now = 0;
  #seed: number;
  readonly #hasFaults: boolean;
  #tell = () => {};
  /** Calls of a priority function that fails until the next failure. */
  #calls = 0;

  constructor(
    config: CacheConfigInput,
    {
      ample,
      stagingPages,
      faults,
      eviction = 'cost-aware',
    }: { ample: boolean; stagingPages?: number; faults?: number; eviction?: 'lru' | 'cost-aware' | number },
  ) {
    const chance = (share: number) => () => faults !== undefined && this.#random() < share;
    this.#seed = faults ?? 0;
    this.#hasFaults = faults !== undefined;
    this.#stage = new Stage(config, new UnreadableDevice(chance(0.1)), {
      disk: new FailingStore(new MemoryTierStore(), {
        put: chance(0.2),
        get: chance(0.1),
        damage: chance(0.1),
        delete: chance(0.1),
      }),
      stagingBytes: stagingPages === undefined ? undefined : stagingPages * GRAIN_BYTES,
      eviction: typeof eviction === 'number' ? () => new RandomPolicy(eviction) : eviction,
      maxPinnedShare: 0.7,
      now: () => this.#now,
    });
    this.#oracle = ample ? oracleOf(this.#stage.config, this.#stage.groups) : undefined;
  }

  /** Does everything there is to do, then ends. Tells each operation that was done. */
  async live(operations: readonly Operation[], tell: () => void): Promise<void> {
    this.#tell = tell;
    for (const operation of operations) await this.apply(operation);
    await this.end();
  }

  async apply(operation: Operation): Promise<void> {
    if (operation.op !== 'serve') this.#tell();
    switch (operation.op) {
      case 'serve': {
        const cast = this.#open(operation);
        if (cast === undefined) return;
        const parts: Operation[] = [
          { ...operation, op: 'resume', player: 1 + (operation.select ?? 0) },
          ...operation.steps.flat(),
          ...(operation.close ? [{ op: 'close' as const, player: 0 }] : []),
        ];
        for (const part of parts) {
          this.#tell();
          await this.#applyTo(cast, part);
        }
        break;
      }
      case 'open':
        this.#open(operation);
        break;
      case 'probe': {
        const { tokens, scope } = this.#prompt(operation);
        const length = this.#stage.probe(tokens, scope);
        if (this.#oracle !== undefined) expect(length).toBe(this.#oracle.probe(tokens, scopeName(scope)));
        break;
      }
      case 'drop': {
        const { tokens, scope } = this.#prompt(operation);
        const group = operation.group % this.#stage.groups.length;
        const dropped = dropPage(this.#stage.manager, { tokens, block: operation.block, groupId: group, scope });
        if (this.#oracle !== undefined) expect(dropped).toBe(this.#oracle.drop(tokens, operation.block, group, scopeName(scope)));
        break;
      }
      case 'wait':
        await this.#stage.manager.settled();
        break;
      case 'pin': {
        const { tokens, scope } = this.#prompt(operation);
        const pin = this.#stage.manager.pin(tokens, scope, { durationMs: operation.durationMs });
        if (pin !== null) this.#pins.push({ pin, tokens, scope, matched: pin.numTokens });
        break;
      }
      case 'unpin':
        if (this.#pins.length > 0) this.#pins.splice(operation.pin % this.#pins.length, 1)[0].pin.release();
        break;
      case 'tick':
        this.#now += operation.ms;
        break;
      case 'resumeAll':
        await this.#resumeAll(operation.meanwhile);
        break;
      case 'resizeTier':
        await this.#resizeTier(operation);
        break;
      case 'rebalance':
        await this.#rebalance(operation);
        break;
      case 'loseDevice':
        await this.#loseDevice(operation.meanwhile);
        break;
      default: {
        const isForSuspended = operation.op === 'resume' || operation.op === 'prefetch';
        const fits = this.#cast.filter(
          ({ player: { kv } }) => operation.op === 'misuse' || isForSuspended === (kv.status === 'suspended'),
        );
        if (fits.length > 0) await this.#applyTo(fits[operation.player % fits.length], operation);
      }
    }
    checkInvariants(this.#stage.manager);
    this.#stage.mirror.expectSame(this.#stage.manager);
    this.#comparePins(operation.op === 'drop' || operation.op === 'loseDevice' || this.#hasFaults);
    for (const cast of this.#cast) this.#compare(cast);
    if (this.#oracle === undefined) return;
    for (const { groupId, pages } of this.#stage.manager.statistics().groups) {
      expect(pages, `pages of group ${groupId}`).toBe(this.#oracle.numPages(groupId));
    }
  }

  /**
   * What is pinned can be matched, as far as it was not lost. Pins whose time is over release themselves. Without partial reuse a
   * partial block may have given way to a longer one, in which nobody finds it, nor a snapshot at its end.
   */
  #comparePins(mayLose: boolean): void {
    for (const each of [...this.#pins]) {
      if (!each.pin.isHeld) {
        this.#pins.splice(this.#pins.indexOf(each), 1);
        continue;
      }
      const matched = this.#stage.probe(each.tokens, each.scope);
      // What is lost may be what a pin's path hangs on, which shows only when the rest goes.
      if (mayLose) each.matched = 0;
      const { enablePartialReuse, tokensPerBlock } = this.#stage.config;
      const kept = enablePartialReuse || each.matched % tokensPerBlock === 0 ? each.matched : 0;
      expect(matched, 'tokens of a pinned prefix').toBeGreaterThanOrEqual(kept);
    }
  }

  /** Everybody who is suspended wants to go on at once, and somebody closes in the middle of it. */
  async #resumeAll(meanwhile: number): Promise<void> {
    const suspended = this.#cast.filter(({ player: { kv } }) => kv.status === 'suspended');
    const going = suspended.map((cast) => outcome(() => cast.player.resume()));
    await Promise.resolve();
    const leaver = this.#cast[meanwhile % (this.#cast.length + 2)];
    if (leaver !== undefined) {
      leaver.player.close();
      this.#cast.splice(this.#cast.indexOf(leaver), 1);
    }
    for (const [index, answer] of (await Promise.all(going)).entries()) this.#hear(suspended[index], answer, leaver);
  }

  /** What a resume answered that others came in between. */
  #hear(cast: Cast, answer: unknown, leaver: Cast | undefined): void {
    const { code } = answer as { code?: string };
    if (code === 'pages-lost') cast.player.beginAgain();
    const isRefusal = BufferwiseError.isInstance(answer) && code !== 'invariant' && (code !== 'resume-closed' || cast === leaver);
    if (typeof answer !== 'boolean' && !isRefusal && !(answer instanceof PriorityFailure)) throw answer;
  }

  async #resizeTier({ tier, share, meanwhile }: Operation & { op: 'resizeTier' }): Promise<void> {
    const { manager, config } = this.#stage;
    if (tier >= config.tiers.length) return;
    const resizing = manager.resizeTier(tier, Math.ceil(config.tiers[tier].quota * share));
    const cast = this.#cast[meanwhile % (this.#cast.length + 2)];
    if (cast?.player.kv.status === 'active') cast.player.suspend();
    await resizing;
    for (const { player } of this.#cast) if (player.kv.status === 'active') player.verifyAll();
  }

  /** Slots go from one pool group to another, as many as may, while somebody suspends. Requests that could be served still can. */
  async #rebalance({ tier, from, to, share, meanwhile }: Operation & { op: 'rebalance' }): Promise<void> {
    const { manager } = this.#stage;
    if (tier >= this.#stage.config.tiers.length) return;
    const { groups } = manager.rebalancePlan(tier);
    expect(manager.needsRebalance).toBe([...this.#stage.config.tiers.keys()].some((each) => manager.rebalancePlan(each).needed));
    const before = manager.storageStatistics(tier);
    const [giver, taker] = [from % groups.length, to % groups.length];
    const given = Math.floor(share * (groups[giver].slots - groups[giver].floor));
    const gained = Math.floor((given * before[giver].slotBytes) / before[taker].slotBytes);
    const slots = groups.map((group, index) => group.slots - (index === giver ? given : 0) + (index === taker ? gained : 0));
    const isMove = giver !== taker && gained > 0;
    const moving = isMove ? moveSlots(manager, tier, { from: giver, to: taker, slots }) : manager.rebalance();
    const cast = this.#cast[meanwhile % (this.#cast.length + 2)];
    if (cast?.player.kv.status === 'active') cast.player.suspend();
    const moved = await moving;
    if (isMove) {
      const totals = manager.storageStatistics(tier).map(({ total }) => total);
      expect(totals).toEqual(moved ? slots : before.map(({ total }) => total));
    }
    for (const { player } of this.#cast) if (player.kv.status === 'active') player.verifyAll();
  }

  /** The device goes, perhaps while somebody wants to go on. */
  async #loseDevice(meanwhile: number): Promise<void> {
    const { manager } = this.#stage;
    const cast = this.#cast[meanwhile % (this.#cast.length + 2)];
    const isGoing = cast?.player.kv.status === 'suspended';
    const going = isGoing ? outcome(() => cast.player.resume()) : undefined;
    await Promise.resolve();
    manager.deviceLost();
    checkInvariants(manager);
    for (const { player } of this.#cast) expect(player.kv.status).toBe('suspended');
    await this.#stage.restoreDevice();
    if (isGoing) this.#hear(cast, await going, undefined);
  }

  /** A number in [0, 1) that follows from the seed. */
  #random(): number {
    this.#seed = (Math.imul(this.#seed, 1664525) + 1013904223) >>> 0;
    return this.#seed / 2 ** 32;
  }

  async end(): Promise<void> {
    if (this.#oracle !== undefined) {
      const evicted = this.#stage.manager.statistics().groups.reduce((count, { evictedPages }) => count + evictedPages, 0);
      expect(evicted, 'pages evicted from ample memory').toBe(0);
    }
    for (const { pin } of this.#pins) pin.release();
    await this.#stage.finish();
  }

  #open(operation: Operation & { op: 'open' | 'serve' }): Cast | undefined {
    if (this.#cast.length === MAX_PLAYERS) return undefined;
    const { tokens, scope } = this.#prompt(operation);
    const { retention } = operation;
    const priority = this.#priority(operation.priority);
    const player = this.#stage.open(tokens, { scope, id: this.#cast.length, priority, retention });
    const request = this.#oracle?.create(tokens, scopeName(scope));
    const cast = { player, prompt: tokens, scope, model: request, ended: false };
    this.#cast.push(cast);
    const { matchDepths, matchLimits } = player.kv;
    expect(matchLimits.length > 0, 'a short match has a reason').toBe(matchDepths.usable < tokens.length);
    const ends = [tokens.length, ...matchLimits.map(({ endpoint }) => endpoint)];
    expect(ends.at(-1)).toBe(matchDepths.usable);
    expect(ends).toEqual([...ends].sort((a, b) => b - a));
    if (request === undefined) return cast;
    const { path, withoutState, usable } = request.match;
    expect(player.kv.matchDepths).toEqual({ path, withoutState, usable });
    expect(player.kv.reuseStatus.map(({ complete, endpoint, coverage }) => ({ complete, endpoint, coverage }))).toEqual(
      request.status,
    );
    return cast;
  }

  async #applyTo(cast: Cast, operation: Operation): Promise<void> {
    const { player, model } = cast;
    const { kv } = player;
    switch (operation.op) {
      case 'resume': {
        const options = this.#selection(cast, operation);
        await this.#attempt(
          () => this.#telling(cast, () => player.resume(options)),
          () => model?.resume(options.optionalReuseGroups, options.rebuiltGroups),
        );
        break;
      }
      case 'prefetch':
        if (operation.tier >= this.#stage.config.tiers.length) return;
        await this.#attempt(
          () => this.#telling(cast, () => kv.prefetch(operation.tier)),
          () => {},
        );
        break;
      case 'step': {
        if (kv.status !== 'active' || cast.ended) return;
        // What was not told to the manager is not written: the step begins again.
        if (operation.again && player.numComputed > kv.historyLength) player.rewind(kv.historyLength);
        const tokens = this.#next(cast, operation.tokens);
        const { numComputed } = player;
        // Room that stays empty must lie behind the scratch, or the step could not end.
        const spare = Math.min(operation.spare, this.#stage.config.swaScratchReuse?.maxRewindLen ?? operation.spare);
        await this.#attempt(
          () => player.step(tokens, spare),
          () => model?.resize(numComputed + tokens.length + spare, numComputed),
        );
        this.#texts.push({ tokens: [...player.text], scope: cast.scope });
        break;
      }
      case 'settle': {
        if (kv.status !== 'active' || cast.ended) return;
        const mayKeep = this.#rewindable(cast);
        if (mayKeep < player.numComputed) player.rewind(mayKeep + (operation.keep % (player.numComputed - mayKeep + 1)));
        const { numComputed } = player;
        const capacity = operation.shrink ? numComputed : kv.capacity;
        await this.#attempt(
          () => player.settle(capacity),
          () => model?.resize(capacity, numComputed),
        );
        break;
      }
      case 'commit': {
        if (kv.status !== 'active') return;
        const left = player.numComputed - kv.numCommittedTokens;
        const count = kv.numCommittedTokens + (operation.count === null ? left : operation.count % (left + 1));
        // A commit of less than was computed says what was computed first, so that no state passes for an earlier one.
        if (count < player.numComputed && !cast.ended) {
          const { numComputed } = player;
          await this.#attempt(
            () => player.settle(),
            () => model?.resize(kv.capacity, numComputed),
          );
        }
        const options: CommitOptions = {
          end: operation.end,
          snapshot: count < player.numComputed && operation.snapshot === true ? undefined : operation.snapshot,
        };
        const tokens = player.text.slice(kv.numCommittedTokens, count);
        const done = await this.#attempt(
          () => player.commit(count, options),
          () => model?.commit(tokens, options),
        );
        if (done && operation.end) cast.ended = true;
        if (done) player.verifyAll();
        break;
      }
      case 'suspend':
        if (kv.status !== 'active') return;
        await this.#attempt(
          () => player.suspend(),
          () => model?.suspend(),
        );
        break;
      case 'stop':
        if (kv.status === 'closed') return;
        await this.#attempt(
          () => kv.stopCommitting(),
          () => model?.stopCommitting(),
        );
        break;
      case 'close': {
        await this.#attempt(
          () => player.close(),
          () => model?.close(),
        );
        this.#cast.splice(this.#cast.indexOf(cast), 1);
        break;
      }
      case 'misuse':
        await this.#misuse(cast, operation.kind);
        break;
    }
  }

  /** A request that lost pages says so instead of what it was asked; then it has begun again. */
  async #telling(cast: Cast, call: () => Promise<boolean>): Promise<unknown> {
    const answer = await outcome(call);
    if ((answer as { code?: string })?.code !== 'pages-lost') {
      if (answer instanceof Error) throw answer;
      return answer;
    }
    cast.player.beginAgain();
    return true;
  }

  /** Calls that must be refused in the present state, if they are calls for the present state at all. */
  async #misuse({ player, ended }: Cast, kind: number): Promise<void> {
    const { kv } = player;
    if (this.#hasFaults) await this.#stage.manager.settled();
    const { numCommittedTokens, historyLength, capacity, status } = kv;
    const tries: (() => unknown)[] = [
      () => kv.resize(historyLength - 1, historyLength),
      () => kv.resize(capacity, capacity + 1),
      () => kv.resize(capacity, historyLength - 1),
      () => kv.resize(0.5),
      () => kv.resize(Number.NaN),
      () => kv.commit(new Array(capacity - numCommittedTokens + 1).fill(0)),
      () => kv.commit([-1]),
      () => kv.resume(status === 'active' ? {} : { optionalReuseGroups: [99 as LayerGroupId] }),
      () => (ended ? kv.resize(capacity) : kv.commit([1.5])),
      () => this.#stage.manager.clearReusableBlocks(),
    ];
    const before = this.#everything();
    const error = await outcome(tries[kind]);
    const isRefused = BufferwiseError.isInstance(error) || error instanceof PriorityFailure;
    expect(isRefused, `misuse ${kind} answered ${String(error)}`).toBe(true);
    if ((error as { code?: string }).code === 'pages-lost') player.beginAgain();
    expect(this.#everything()).toEqual(before);
  }

  /** Does a thing for real and by the rules. Whatever refuses or says false must have changed nothing. Says whether it was done. */
  async #attempt(real: () => unknown, rules: () => void): Promise<boolean> {
    const before = this.#everything();
    const lost = this.#numLost();
    const answer = await outcome(real);
    const failed = answer instanceof Error;
    const isRefusal = BufferwiseError.isInstance(answer) && answer.code !== 'invariant';
    if (failed && !isRefusal && !(answer instanceof PriorityFailure)) throw answer;
    // What did not arrive meanwhile is not its doing.
    if ((failed || answer === false) && this.#numLost() === lost) expect(this.#everything()).toEqual(before);
    if (
      this.#oracle === undefined ||
      answer instanceof PriorityFailure ||
      (answer as { code?: string })?.code === 'invalid-priority'
    )
      return !failed && answer !== false;
    expect(answer, 'a false from ample memory').not.toBe(false);
    const refusal = outcomeOfRules(rules);
    expect(failed ? answer.name : undefined).toBe(refusal);
    return !failed;
  }

  #numLost(): number {
    return this.#stage.manager.statistics().groups.reduce((sum, { lostPages }) => sum + lostPages, 0);
  }

  /** All that anybody can see, with the answers to every prompt tried so far. */
  #everything(): unknown {
    const { manager, groups } = this.#stage;
    return structuredClone({
      requests: this.#cast.map(({ player: { kv } }) => ({
        lengths: [kv.status, kv.numCommittedTokens, kv.historyLength, kv.capacity],
        status: kv.reuseStatus,
        depths: kv.matchDepths,
        pages: groups.map(({ kind }, id) =>
          kind === 'ssm' ? kv.ssmBlockBaseIndex(id as LayerGroupId) : [...kv.basePageIndices(id as LayerGroupId)],
        ),
        scratch: groups.map((_, id) => kv.scratch(id as LayerGroupId)),
      })),
      // What a store does not take comes back at any time.
      storage: this.#stage.config.tiers.map((_, tier) =>
        manager.storageStatistics(tier).map((slots) => (tier === 0 ? slots : this.#hasFaults || slots.free)),
      ),
      statistics: manager.statistics(),
      matches: this.#texts.slice(-12).map(({ tokens, scope }) => manager.probeReuse(tokens, scope)),
    });
  }

  #compare({ player: { kv }, model }: Cast): void {
    if (model === undefined) return;
    expect([kv.status, kv.numCommittedTokens, kv.historyLength, kv.capacity]).toEqual([
      model.state,
      model.committed,
      model.history,
      model.capacity,
    ]);
    this.#stage.groups.forEach(({ kind }, id) => {
      if (kind === 'ssm') return;
      const indices = [...kv.basePageIndices(id as LayerGroupId)];
      expect(
        indices.flatMap((index, ordinal) => (index < 0 ? [] : [ordinal])),
        `blocks of group ${id} that have an index`,
      ).toEqual(model.shownBlocks(id));
      const range = kv.scratch(id as LayerGroupId)?.range;
      expect(range === undefined ? [0, 0] : [range.begin, range.end], `scratch of group ${id}`).toEqual(
        model.holdings[id].scratch,
      );
    });
  }

  /** A choice of optional groups that is mostly allowed. */
  #selection({ player: { kv, hasResumed } }: Cast, { select, rebuild, player }: Operation & { op: 'resume' }): ResumeOptions {
    if (hasResumed && player % 7 > 0) return {};
    const named = (bits: number | null) => {
      const ids = this.#stage.groups.flatMap(({ policy }, id) =>
        policy === 'optional' && bits !== null && bits & (1 << id) ? [id as LayerGroupId] : [],
      );
      return bits === null ? undefined : ids;
    };
    const optionalReuseGroups = named(select)?.filter((id) => kv.reuseStatus[id].complete || player % 11 === 0);
    return {
      optionalReuseGroups,
      rebuiltGroups: named(rebuild)?.filter((id) => !optionalReuseGroups?.includes(id) || player % 11 === 1),
    };
  }

  /** The lowest count to which a request may be taken back and go on: the history, or the margin behind scratch. */
  #rewindable({ player: { kv, numComputed } }: Cast): number {
    const hasScratch = this.#stage.groups.some((_, id) => kv.scratch(id as LayerGroupId) !== null);
    if (!hasScratch) return kv.historyLength;
    const margin = kv.capacity - (this.#stage.config.swaScratchReuse?.maxRewindLen ?? 0);
    return Math.min(numComputed, Math.max(kv.historyLength, margin));
  }

  /** Tokens of the next step: the rest of the prompt first. */
  #next({ player, prompt }: Cast, tokens: readonly Token[]): Token[] {
    const { numComputed } = player;
    const rest = prompt.slice(numComputed, numComputed + tokens.length);
    return [...rest, ...tokens.slice(rest.length)].slice(0, Math.max(0, MAX_TOKENS - numComputed));
  }

  #prompt({ prompt, like, scope }: { prompt: readonly Token[]; like: number | null; scope: number }): {
    tokens: readonly Token[];
    scope: ReuseScope | undefined;
  } {
    const known = like === null || this.#texts.length === 0 ? undefined : this.#texts[like % this.#texts.length];
    if (known === undefined) return { tokens: prompt, scope: SCOPES[scope] };
    const kept = known.tokens.slice(0, known.tokens.length - ((like ?? 0) % 4));
    return { tokens: [...kept, ...prompt].slice(0, MAX_TOKENS), scope: known.scope };
  }

  #priority(kind: PriorityKind): PriorityFn | undefined {
    if (kind === 'none') return undefined;
    return (ordinal) => {
      if (kind === 'byBlock') return (ordinal * 37) % 101;
      if (++this.#calls % 9 > 0) return 50;
      if (kind === 'throws') throw new PriorityFailure('no priority today');
      return [101, -1, 0.5, Number.NaN][this.#calls % 4];
    };
  }
}

async function outcome(call: () => unknown): Promise<unknown> {
  try {
    return await call();
  } catch (error) {
    return error;
  }
}

function outcomeOfRules(rules: () => void): string | undefined {
  try {
    rules();
    return undefined;
  } catch (error) {
    if (error instanceof ModelRefusal) return error.kind;
    throw error;
  }
}
