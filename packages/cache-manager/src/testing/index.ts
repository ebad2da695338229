export { checkInvariants } from './check-invariants.ts';
export { type DropPageTarget, dropPage } from './drop-page.ts';
export { InvariantError } from './invariant-error.ts';
