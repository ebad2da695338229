/**
 * Moves a request from a prefill worker to a decode worker, group by group.
 *
 * @packageDocumentation
 */
export { type Clock, systemClock } from './clock.ts';
export { TransferError, type TransferErrorCode } from './errors.ts';
export { type LayoutMap, type MappedBuffer, mapLayouts } from './transfer/layout-map.ts';
// What travels
export { type PlannedPage, planTransfer, type ReceiverGroup, type TransferPlan } from './transfer/plan-transfer.ts';
// The two sides of a move, without I/O
export { type ReceiverAction, type ReceiverInput, ReceiveTransfer } from './transfer/receive-transfer.ts';
export { type Agreement, type SenderAction, type SenderInput, SendTransfer } from './transfer/send-transfer.ts';
export {
  type BufferForm,
  type BufferForms,
  type BufferRow,
  describeLayout,
  type LayoutDescription,
  readLayout,
  type TransferBuffer,
  type TransferGroup,
  type TransferLayout,
  transferLayout,
} from './transfer/transfer-layout.ts';
export {
  decodeMessage,
  encodeMessage,
  MOST_MISSING,
  type OfferedRequest,
  type TransferMessage,
} from './transfer/transfer-message.ts';
export { DEFAULT_TRANSFER_TIMES, type TransferOutcome, type TransferTimes } from './transfer/transfer-times.ts';
// The two ends of moves, on a cache manager and over connections
export type { Admission, Admit, ArrivedRequest, TransferOffer } from './worker/incoming-transfer.ts';
export { managerLayout, type PageSlots } from './worker/manager-pages.ts';
export type { MovingPages, OutgoingTransfer } from './worker/outgoing-transfer.ts';
export { TransferReceiver, type TransferReceiverOptions } from './worker/transfer-receiver.ts';
export type { GroupTraffic, TransferReport } from './worker/transfer-report.ts';
export { type OutgoingMove, TransferSender } from './worker/transfer-sender.ts';
export type { TransferWorkerOptions } from './worker/worker-options.ts';
