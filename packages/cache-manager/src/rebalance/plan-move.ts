import { grainsFor, maxSlotsIn } from '@bufferwise/scratch-allocator';

/** What was seen of one pool group of a tier, and what it must keep. */
export interface GroupNeeds {
  /** Bytes of a slot in each pool of the group. */
  readonly slotSizes: readonly number[];
  /** Slots there are. */
  readonly slots: number;
  /** Slots that it must keep in any case. */
  readonly floor: number;
  /** The most slots that requests had to themselves at a time. */
  readonly peakUse: number;
  /** Slots beyond those there are that requests wanted in vain, at most at a time. */
  readonly short: number;
  /** Slots that were never in use. */
  readonly idle: number;
  /** Pages that left to make room. */
  readonly evicted: number;
  /** The same, and those lost with others. */
  readonly gone: number;
  /** Pages that were asked for again soon after they had left; of large pools, of a sample. */
  readonly returned: number;
  /** What each further step of growth would have saved, and the variance of that. */
  readonly gains: readonly number[];
  readonly variances: readonly number[];
}

/** How the grains of a tier are counted, and how sure one has to be to move them. */
export interface MoveRules {
  /** Grains of the tier's quota. */
  readonly grains: number;
  /** Bytes of a grain. */
  readonly granularity: number;
  /** Grains of one step of growth. */
  readonly stepGrains: number;
  /** Gains below this are not worth a move. */
  readonly leastGain: number;
  /** How many times its loss a move must gain. */
  readonly ratio: number;
  /** How often moves were taken back lately: what is idle is not given away while there is doubt. */
  readonly doubt: number;
}

/**
 * Why memory moves: `requests` found no room; what one group evicted is wanted again, and another has slots that are `idle`, or that
 * would have saved less (`misses`).
 */
export type MoveReason = 'requests' | 'idle' | 'misses';

/** Grains that go from one pool group to another. */
export interface Move {
  readonly from: number;
  readonly to: number;
  readonly grains: number;
  /** Slots of every pool group afterwards. */
  readonly slots: readonly number[];
  /** What the move would have saved, and what it would have cost, while it was watched. */
  readonly gain: number;
  readonly loss: number;
  readonly reason: MoveReason;
}

/** A group that gives keeps so many times what requests had at most: it is not to be short next. */
const SPARE_USE = 1.25;
/** One that gives to requests keeps as many slots for its cache as for requests: else overload would leave no cache. */
const SPARE_FOR_REQUESTS = 2;
/** The part of what a group uses that it gives at most at a time. */
const MOST_GIVEN = 0.25;
/** Fewer pages that came back prove nothing. */
const LEAST_RETURNED = 8;

/**
 * The one move of grains between two pool groups that would have saved most, or null when none is worth it.
 *
 * A group gains what its growth would have kept of what it evicted. One that shrinks loses nothing as far as its slots were idle;
 * beyond, it is taken to lose at least what as much growth would gain it, more so the smaller it gets. As nothing is known of a
 * group that nothing leaves, it gives no more than has left it. Requests that found no room come first, then what was idle.
 *
 * The sum of all grains stays, no group falls below its floor, and the groups that neither give nor take keep their slots.
 */
export function planMove(needs: readonly GroupNeeds[], rules: MoveRules): Move | null {
  const moves: Move[] = [];
  for (let to = 0; to < needs.length; to++) {
    for (let from = 0; from < needs.length; from++) if (from !== to) addMoves(moves, needs, rules, from, to);
  }
  const forRequests = moves.filter((move) => move.reason === 'requests');
  if (forRequests.length > 0) {
    const helps = ({ to, slots }: Move) => Math.min(needs[to].short, slots[to] - needs[to].slots);
    const most = Math.max(...forRequests.map(helps));
    return best(
      forRequests.filter((move) => helps(move) === most),
      ({ loss }) => -loss,
    );
  }
  const ofIdle = moves.filter((move) => move.reason === 'idle');
  if (ofIdle.length > 0) return best(ofIdle, ({ grains }) => grains);
  return best(moves, ({ gain, loss }) => gain - loss);
}

/** The first of those with the highest score; null when there are none. */
function best(moves: readonly Move[], score: (move: Move) => number): Move | null {
  let chosen: Move | null = null;
  for (const move of moves) if (chosen === null || score(move) > score(chosen)) chosen = move;
  return chosen;
}

function addMoves(moves: Move[], needs: readonly GroupNeeds[], rules: MoveRules, from: number, to: number): void {
  const { granularity, stepGrains } = rules;
  const [giver, taker] = [needs[from], needs[to]];
  if (giver.short > 0 || (taker.short === 0 && taker.returned === 0)) return;
  const given = grainsFor(giver.slots, giver.slotSizes, granularity);
  const taken = grainsFor(taker.slots, taker.slotSizes, granularity) + unusedGrains(needs, rules);
  if (taker.short > 0 && !couldServe(needs, rules, to)) return;
  const floor = keeps(giver, taker);
  for (let step = 1; step <= taker.gains.length && step * stepGrains < given; step++) {
    const grains = step * stepGrains;
    const left = maxSlotsIn(given - grains, giver.slotSizes, granularity);
    const grown = maxSlotsIn(taken + grains, taker.slotSizes, granularity);
    if (left < floor) return;
    if (grown <= taker.slots) continue;
    const slots = needs.map((group, index) => (index === from ? left : index === to ? grown : group.slots));
    const lost = Math.max(0, giver.slots - left - giver.idle);
    const gain = sumOf(taker.gains.slice(0, step));
    const loss = lossOf(giver, lost, left, rules);
    const reason = reasonFor(giver, taker, step, { lost, gain, loss: loss.mean, variance: loss.variance }, rules);
    if (reason === 'misses' && step > 1 && grown - taker.slots > taker.slots * MOST_GIVEN) return;
    if (reason !== null) moves.push({ from, to, grains, slots, gain, loss: loss.mean, reason });
    if (reason === 'requests' && grown >= taker.slots + taker.short) return;
  }
}

/** Slots that a group keeps when it gives to another. */
function keeps(giver: GroupNeeds, taker: GroupNeeds): number {
  return Math.max(giver.floor, Math.ceil(giver.peakUse * (taker.short > 0 ? SPARE_FOR_REQUESTS : SPARE_USE)));
}

/** Whether all others together could give what requests wanted of a group: nothing moves for a request that can never fit. */
function couldServe(needs: readonly GroupNeeds[], rules: MoveRules, to: number): boolean {
  const { granularity } = rules;
  const taker = needs[to];
  let grains = grainsFor(taker.slots, taker.slotSizes, granularity) + unusedGrains(needs, rules);
  needs.forEach((giver, group) => {
    if (group === to || giver.short > 0) return;
    const kept = grainsFor(keeps(giver, taker), giver.slotSizes, granularity);
    grains += Math.max(0, grainsFor(giver.slots, giver.slotSizes, granularity) - kept);
  });
  return maxSlotsIn(grains, taker.slotSizes, granularity) >= taker.slots + taker.short;
}

/** What speaks for a move; null when nothing does, or not enough. */
function reasonFor(
  giver: GroupNeeds,
  taker: GroupNeeds,
  step: number,
  seen: { lost: number; gain: number; loss: number; variance: number },
  { leastGain, ratio, doubt }: MoveRules,
): MoveReason | null {
  if (taker.short > 0) return 'requests';
  if (seen.lost === 0 && doubt === 0) return 'idle';
  if (taker.returned < LEAST_RETURNED || seen.lost > giver.gone || seen.lost > (giver.slots - giver.idle) * MOST_GIVEN)
    return null;
  const error = Math.sqrt(sumOf(taker.variances.slice(0, step)) + ratio * ratio * seen.variance);
  return seen.gain >= leastGain && seen.gain - ratio * seen.loss >= error ? 'misses' : null;
}

/** Grains that no group has slots for. */
function unusedGrains(needs: readonly GroupNeeds[], { grains, granularity }: MoveRules): number {
  return grains - sumOf(needs.map(({ slots, slotSizes }) => grainsFor(slots, slotSizes, granularity)));
}

/** What a group loses that gives `lost` slots which were in use: the gain of as many more, scaled to what is left of it. */
function lossOf(group: GroupNeeds, lost: number, left: number, { granularity, stepGrains }: MoveRules) {
  const stepSlots = (stepGrains * granularity) / sumOf(group.slotSizes);
  const scale = group.slots / left;
  const partOf = (step: number) => Math.min(1, Math.max(0, lost / stepSlots - step));
  return {
    mean: scale * sumOf(group.gains.map((gain, step) => gain * partOf(step))),
    variance: scale * scale * sumOf(group.variances.map((variance, step) => variance * partOf(step))),
  };
}

function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}
