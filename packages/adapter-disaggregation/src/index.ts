/**
 * Moves a request from a prefill worker to a decode worker, group by group.
 *
 * @packageDocumentation
 */
export { type Clock, systemClock } from './clock.ts';
export { TransferError, type TransferErrorCode } from './errors.ts';
