import { grainsFor, tierGranularity } from '@bufferwise/scratch-allocator';
import type { TierGroup } from '../storage/tier.ts';
import { NeedGauge, NUM_STEPS } from './need-gauge.ts';
import type { GroupNeeds, MoveRules } from './plan-move.ts';

/** Steps of growth that a tier is divided into: one is the least that is moved. */
const STEPS_OF_TIER = 32;
/** The part of all work that a move must save to be worth it. */
const LEAST_GAIN = 0.005;
/** How many times its loss a move must gain. Doubles each time that a move was taken back, as far as `MOST_DOUBT`. */
const LEAST_RATIO = 1.25;
const MOST_DOUBT = 6;
/** Turnovers of a pool group after which all counts are halved. */
const MEMORY_TURNOVERS = 4;

export interface TierNeedsOptions {
  readonly kind: 'device' | 'host' | 'disk';
  readonly groups: readonly TierGroup[];
  /** Bytes of a slot in each pool, by pool group. */
  readonly slotSizes: readonly (readonly number[])[];
  /** Bytes of the tier. */
  readonly quota: number;
  /** Whether pages that leave go to a colder tier: what brings them back is counted in bytes, else in tokens computed again. */
  readonly passesDown: boolean;
}

/**
 * What was seen of the pool groups of one tier since they last changed their size: who evicted what was wanted again, who had room
 * that nobody used, who had no room for a request. A tier with a single pool group sees nothing, as there is nothing to decide.
 */
export class TierNeeds {
  readonly passesDown: boolean;
  /** Bytes of the tier, as last asked for. */
  quota: number;
  /** Grains of each pool group, as they were last moved; null while they are as planned. */
  weights: readonly number[] | null = null;
  readonly #kind: TierNeedsOptions['kind'];
  readonly #groups: readonly TierGroup[];
  readonly #slotSizes: readonly (readonly number[])[];
  readonly #gauges: readonly NeedGauge[];
  readonly #mostUsed: Int32Array;
  readonly #peakUse: Int32Array;
  readonly #short: Int32Array;
  readonly #watches: boolean;
  /** What was done since a page first left: tokens asked for, or bytes brought back. */
  #work = 0;
  #anyLeft = false;
  #lastMove: { from: number; to: number } | null = null;
  /** How often moves were taken back, lately. */
  #doubt = 0;

  constructor(options: TierNeedsOptions) {
    const { groups } = options;
    this.#kind = options.kind;
    this.#groups = groups;
    this.#slotSizes = options.slotSizes;
    this.quota = options.quota;
    this.passesDown = options.passesDown;
    this.#watches = groups.length > 1;
    this.#gauges = groups.map(() => new NeedGauge());
    this.#mostUsed = new Int32Array(groups.length);
    this.#peakUse = new Int32Array(groups.length);
    this.#short = new Int32Array(groups.length);
    this.restart();
  }

  /** Forgets what was seen. */
  restart(): void {
    if (!this.#watches) return;
    const { granularity, stepGrains } = this.#steps();
    this.#gauges.forEach((gauge, group) => {
      gauge.restart(Math.max(1, (stepGrains * granularity) / this.#groups[group].slotBytes));
    });
    this.#work = 0;
    this.#anyLeft = false;
    this.#watchUse();
  }

  /** Takes the present use into account. No garbage. */
  sample(): void {
    if (!this.#watches) return;
    for (let group = 0; group < this.#mostUsed.length; group++) {
      const { slots, numLeaving } = this.#groups[group];
      const used = slots.slots - slots.free;
      if (used > this.#mostUsed[group]) this.#mostUsed[group] = used;
      if (used - numLeaving > this.#peakUse[group]) this.#peakUse[group] = used - numLeaving;
    }
  }

  /** A page of a pool group leaves the tier to make room for another of the same. */
  left(group: number, hash: number): void {
    if (!this.#watches) return;
    if (!this.#anyLeft) {
      this.#anyLeft = true;
      this.#work = 0;
    }
    const gauge = this.#gauges[group];
    gauge.left(hash);
    if (gauge.gone > MEMORY_TURNOVERS * this.#groups[group].slots.slots) this.#fade();
  }

  /** A page of a pool group is dropped to make room: the one that left, or one that is lost with it. */
  dropped(group: number): void {
    this.#gauges[group].gone++;
  }

  /**
   * A page would have been used, had it been there; or it comes back from a colder tier.
   *
   * @param cost what that takes: tokens, or bytes where `passesDown`
   * @returns whether it was there not long ago
   */
  missed(group: number, hash: number, cost: number): boolean {
    return this.#watches && this.#gauges[group].missed(hash, cost);
  }

  /** A request asks for so many tokens, or brings back so many bytes where `passesDown`. What is missed from now on is for it. */
  worked(amount: number): void {
    if (!this.#watches) return;
    this.#work += amount;
    for (const gauge of this.#gauges) gauge.nextRequest();
  }

  /** A request found a pool group short of so many slots, whatever would be evicted. */
  refused(group: number, slots: number): void {
    if (slots > this.#short[group]) this.#short[group] = slots;
  }

  /** Whether there may be something to move: anything was evicted that came back, or refused. */
  get mayMove(): boolean {
    if (!this.#watches) return false;
    return this.#gauges.some(({ returned }, group) => returned > 0 || this.#short[group] > 0);
  }

  /** What was seen of each pool group. `floors`: slots that each must keep. */
  groupNeeds(floors: readonly number[]): GroupNeeds[] {
    this.sample();
    for (const gauge of this.#gauges) gauge.nextRequest();
    return this.#groups.map(({ slots }, group) => ({
      slotSizes: this.#slotSizes[group],
      slots: slots.slots,
      floor: floors[group],
      peakUse: this.#peakUse[group],
      short: this.#short[group],
      idle: this.#watches ? slots.slots - this.#mostUsed[group] : 0,
      evicted: Math.round(this.#gauges[group].evicted),
      gone: Math.round(this.#gauges[group].gone),
      returned: Math.round(this.#gauges[group].returned),
      gains: Array.from({ length: NUM_STEPS }, (_, step) => this.#gauges[group].gains[step]),
      variances: Array.from({ length: NUM_STEPS }, (_, step) => this.#gauges[group].variances[step]),
    }));
  }

  rules(): MoveRules {
    const factor = 2 ** this.#doubt;
    return {
      ...this.#steps(),
      leastGain: LEAST_GAIN * factor * this.#work,
      ratio: LEAST_RATIO * factor,
      doubt: this.#doubt,
    };
  }

  /** Grains went from one group to another. Those that go to and fro have to gain more each time. */
  moved(from: number, to: number): void {
    const last = this.#lastMove;
    if (last !== null) {
      const isBack = last.from === to && last.to === from;
      this.#doubt = isBack ? Math.min(MOST_DOUBT, this.#doubt + 1) : Math.max(0, this.#doubt - 1);
    }
    this.#lastMove = { from, to };
    const { granularity } = this.#steps();
    this.weights = this.#groups.map(({ slots }, group) => grainsFor(slots.slots, this.#slotSizes[group], granularity));
    this.#watchUse();
  }

  /** The tier has another quota. */
  resized(quota: number): void {
    this.quota = quota;
    this.restart();
  }

  #steps(): Pick<MoveRules, 'grains' | 'granularity' | 'stepGrains'> {
    const granularity = tierGranularity({ tier: this.#kind, quota: this.quota });
    const used = this.#groups.reduce(
      (sum, { slots }, group) => sum + grainsFor(slots.slots, this.#slotSizes[group], granularity),
      0,
    );
    const grains = Math.max(used, Math.ceil(this.quota / granularity));
    return { granularity, grains, stepGrains: Math.max(1, Math.round(grains / STEPS_OF_TIER)) };
  }

  #fade(): void {
    for (const gauge of this.#gauges) gauge.fade();
    this.#work /= 2;
    this.#watchUse();
  }

  /** Watches from now on how many slots are in use. */
  #watchUse(): void {
    this.#mostUsed.fill(0);
    this.#peakUse.fill(0);
    this.#short.fill(0);
    this.sample();
  }
}
