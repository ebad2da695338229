/**
 * Moves a request from a prefill worker to a decode worker, group by group.
 *
 * @packageDocumentation
 */
export { type Clock, systemClock } from './clock.ts';
export { TransferError, type TransferErrorCode } from './errors.ts';
// What travels
export { type PlannedPage, planTransfer, type ReceiverGroup, type TransferPlan } from './transfer/plan-transfer.ts';
// The two sides of a move, without I/O
export { type ReceiverAction, type ReceiverInput, ReceiveTransfer } from './transfer/receive-transfer.ts';
export { type SenderAction, type SenderInput, SendTransfer } from './transfer/send-transfer.ts';
export {
  checkSameLayout,
  describeLayout,
  type LayoutDescription,
  type TransferBuffer,
  type TransferGroup,
  type TransferLayout,
  transferLayout,
} from './transfer/transfer-layout.ts';
export { decodeMessage, encodeMessage, MOST_MISSING, type TransferMessage } from './transfer/transfer-message.ts';
export { DEFAULT_TRANSFER_TIMES, type TransferOutcome, type TransferTimes } from './transfer/transfer-times.ts';
