import type { ReusePolicy } from '@bufferwise/core-policy';
import { type MemoryFrame, NOTHING, type PoolAbout, SLOT_STATES } from '../protocol/memory-frame.ts';
import type { ColourMode } from '../state/colour-mode.ts';
import { conversationHueIndex } from '../story/names.ts';

/** Places in the palette: eight hues, then what has no hue of its own. */
export const NUM_HUES = 8;
export const NEUTRAL = 8;
export const SHARED = 9;

/** How a cell looks, in one byte: the state of its slot, its colour, and whether it has just changed. */
const COLOUR_SHIFT = 3;
const FRESH = 1 << 7;

export const stateOfCode = (code: number): number => code & 7;
export const colourOfCode = (code: number): number => (code >> COLOUR_SHIFT) & 15;
export const isFreshCode = (code: number): boolean => (code & FRESH) !== 0;

export const POLICY_COLOURS: Readonly<Record<ReusePolicy, number>> = { required: 6, optional: 3, private: 1 };
export const STATE_COLOURS: readonly number[] = [NEUTRAL, 4, 3, NEUTRAL, 7];

const FREE = SLOT_STATES.indexOf('free');

/** What decides about colours besides the frame. */
export interface Colouring {
  readonly mode: ColourMode;
  /** Index = group id. */
  readonly policies: readonly ReusePolicy[];
  /** Milliseconds until which each slot of the frame counts as fresh; null where nothing does. */
  readonly freshUntil: Float64Array | null;
  readonly now: number;
}

/** Writes the code of each slot of a pool into `out`, which has an entry for each. No garbage. */
export function writeCodes(frame: MemoryFrame, pool: PoolAbout, colouring: Colouring, out: Uint8Array): void {
  const { mode, policies, freshUntil, now } = colouring;
  const { state, group, owner, owners } = frame;
  for (let slot = 0; slot < pool.numSlots; slot++) {
    const at = pool.firstSlot + slot;
    let colour = NEUTRAL;
    if (state[at] !== FREE) {
      if (mode === 'group') colour = group[at] === NOTHING ? NEUTRAL : group[at] % NUM_HUES;
      else if (mode === 'policy') colour = group[at] === NOTHING ? NEUTRAL : POLICY_COLOURS[policies[group[at]]];
      else if (mode === 'status') colour = STATE_COLOURS[state[at]];
      else if (owner[at] !== NOTHING) colour = isOne(owners[at]) ? conversationHueIndex(owner[at]) : SHARED;
    }
    const fresh = freshUntil !== null && freshUntil[at] > now ? FRESH : 0;
    out[slot] = fresh | (colour << COLOUR_SHIFT) | state[at];
  }
}

/** Whether at most one bit is set. */
function isOne(bits: number): boolean {
  return (bits & (bits - 1)) === 0;
}
