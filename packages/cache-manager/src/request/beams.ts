import { StateError } from '@bufferwise/core-policy';
import { BeamChange } from './beam-change.ts';
import type { RequestState } from './request-state.ts';
import { isInScratchStep } from './scratch.ts';

/** More beams than anybody searches with; a wider search is a mistake in the arguments. */
const MAX_BEAMS = 4096;

/**
 * Lets the beams of a request continue from others: beam i of the new ones from beam `parents[i]` of the present ones. Forking,
 * reordering and keeping one beam are all this.
 *
 * @param call the public method, for messages
 * @returns false when there is no room for more beams; nothing has changed then
 * @throws {StateError} in the wrong state or on parents that do not exist; whatever the device throws when it refuses the
 *   copies. Nothing has changed then, except that pages evicted to make room stay evicted
 */
export function continueBeams(state: RequestState, parents: ArrayLike<number>, call: string): boolean {
  const { manager } = state;
  manager.checkNotAsking(call);
  checkBeams(state, parents, call);
  if (isUnchanged(parents, state.beamWidth)) return true;
  const change = new BeamChange(state, Int32Array.from(parents));
  manager.demand.reset();
  change.addDemand();
  if (!manager.demand.fits()) return false;
  manager.demand.makeRoom();
  change.orderCopies();
  manager.commands.execute(change.created);
  manager.recorder.branched(change.created);
  change.apply();
  return true;
}

/** The beams 0 … width - 1 as they are; those that are more than now continue from beam 0. */
export function parentsForWidth(state: RequestState, width: number): ArrayLike<number> {
  // Not a list yet: a width that is none is refused before it makes one.
  const { beamWidth } = state;
  return isBeamWidth(width) ? Array.from({ length: width }, (_, beam) => (beam < beamWidth ? beam : 0)) : { length: width };
}

/** @throws {StateError} `unknown-beam` */
export function checkBeam(state: RequestState, beam: number, call: string): void {
  if (Number.isInteger(beam) && beam >= 0 && beam < state.beamWidth) return;
  throw new StateError('unknown-beam', `${call}: there is no beam ${beam}; beams count from 0 to ${state.beamWidth - 1}`);
}

function checkBeams(state: RequestState, parents: ArrayLike<number>, call: string): void {
  if (state.status !== 'active')
    throw new StateError(`beams-${state.status}`, `${call}: the request is ${state.status}; resume it first`);
  if (state.ended)
    throw new StateError(
      'beams-ended',
      `${call}: the last commit had \`end: true\`, its pages were moved into the tree; close the request`,
    );
  if (!isBeamWidth(parents.length)) {
    throw new StateError('invalid-beam-width', `${call}: a request carries 1 to ${MAX_BEAMS} beams, not ${parents.length}`);
  }
  for (let child = 0; child < parents.length; child++) checkBeam(state, parents[child], call);
  if ((state.beamWidth === 1 || parents.length === 1) && isInScratchStep(state)) {
    throw new StateError(
      'scratch-in-use',
      `${call}: with one beam, blocks between token ${state.history} and ${state.capacity} are scratch in this step; ` +
        `finish it first, with a resize or commit that raises the history${parents.length === 1 ? ', or lower the capacity' : ''}`,
    );
  }
}

function isBeamWidth(width: number): boolean {
  return Number.isInteger(width) && width >= 1 && width <= MAX_BEAMS;
}

function isUnchanged(parents: ArrayLike<number>, width: number): boolean {
  if (parents.length !== width) return false;
  for (let child = 0; child < width; child++) if (parents[child] !== child) return false;
  return true;
}
