/**
 * Workers find each other over NATS, and requests find the worker that has most of their prompt.
 *
 * @packageDocumentation
 */
export type { Clock } from '../clock.ts';
export { TransferError, type TransferErrorCode } from '../errors.ts';
// Without I/O, for another bus
export { BlockAnnouncer, hashOfKey } from './block-announcer.ts';
export { type Candidate, chooseWorker, DEFAULT_ROUTING_WEIGHTS, type RoutingWeights, scoreOf } from './choose-worker.ts';
// On NATS
export { connectNats } from './connect-nats.ts';
// What is said
export { ControlError, type ControlErrorCode } from './control-error.ts';
export type {
  BlockChange,
  ControlMessage,
  DeclineReason,
  Job,
  JobId,
  JobRole,
  WorkerDescription,
  WorkerLoad,
  WorkerRole,
} from './control-message.ts';
export type { ControlOptions } from './control-options.ts';
export {
  type ControlAnswer,
  type ControlJob,
  ControlRouter,
  type ControlRouterOptions,
  type RouterStatistics,
} from './control-router.ts';
export { type ControlTimes, DEFAULT_CONTROL_TIMES } from './control-times.ts';
export { ControlWorker, type ControlWorkerOptions } from './control-worker.ts';
export {
  type JobOutcome,
  type JobReply,
  type JobRequest,
  JobTable,
  type JobTableAction,
  type NoPlacement,
  type Placement,
  type Placer,
} from './job-table.ts';
export { layoutHash } from './layout-hash.ts';
export { PrefixIndex, type PrefixReuse } from './prefix-index.ts';
export { type RouterAction, RouterCore, type RouterInput, type RoutingOptions } from './router-core.ts';
export { type JobEnd, type WorkerAction, WorkerCore, type WorkerInput } from './worker-core.ts';
export { type KnownWorker, WorkerRegistry } from './worker-registry.ts';
