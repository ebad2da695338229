/**
 * What plugins of Bufferwise implement, version `v1`.
 *
 * @packageDocumentation
 */

// Every plugin
export { CallGate } from './call-gate.ts';
// Connectors: what of a request is loaded and saved
export { checkedConnector } from './connector/checked-connector.ts';
export { connectorLayout, connectorMemory } from './connector/connector-layout.ts';
export type {
  BlocksByGroup,
  ConnectorEvent,
  ConnectorGroup,
  ConnectorLayout,
  ConnectorMemory,
  ConnectorRequest,
  ConnectorScheduler,
  ConnectorWorker,
  FailedPage,
  FinishAnswer,
  FinishedTransfers,
  KvConnector,
  KvConnectorSupports,
  Lookup,
  PageBuffer,
  PageNumbers,
  StepOrders,
  StepReport,
} from './connector/kv-connector.ts';
export { affinityOf, arrangementOf, PageNames, wholeBlockKeys } from './connector/page-names.ts';
export { blocksToLoad, blocksToSave, type LoadablePrefix, longestLoad, slotOfBlock } from './connector/pages-to-move.ts';
// Consumers: model parts that read and write pages
export { blocksCross, checkLayout } from './consumer/check-layout.ts';
export { checkedConsumer } from './consumer/checked-consumer.ts';
export type {
  BindOptions,
  ConsumerAdapter,
  ConsumerStep,
  ConsumerSupports,
  ReplayPlan,
  StepRequest,
} from './consumer/consumer-adapter.ts';
export { firstLiveToken, reusedGroups, usualReplay } from './consumer/replay.ts';
export { StepPages } from './consumer/step-pages.ts';
export { AdapterError, type AdapterErrorCode } from './errors.ts';
export { interrupted } from './interrupted.ts';
// Numbers in pages
export { decodeHalf, decodeHalves, encodeHalf, encodeHalves } from './numbers/halves.ts';
// Page stores: pages outside of the process
export { checkedPageStore } from './page-store/checked-page-store.ts';
export { deleteByPrefix } from './page-store/delete-by-prefix.ts';
export { checkPageKey, type PageKey } from './page-store/page-key.ts';
export type {
  ListOptions,
  PageEntry,
  PageList,
  PageStore,
  PageStoreLimits,
  PageStoreStatistics,
  PageStoreSupports,
  PutOutcome,
} from './page-store/page-store.ts';
export { openSealedPage, SEAL_BYTES, sealPage } from './page-store/sealed-page.ts';
export { type CallOptions, checkSpecVersion, type Plugin } from './plugin.ts';
// Transports: messages and pages between workers
export { checkedTransport } from './transport/checked-transport.ts';
export {
  type DecodedFrame,
  decodeFrame,
  encodeFrame,
  FRAME_HEADER_BYTES,
  type Frame,
  type FrameKind,
  MAX_REQUEST_BYTES,
} from './transport/frame.ts';
export type {
  PageConnection,
  PageListener,
  PageTransport,
  PageTransportLimits,
  PageTransportSupports,
  Received,
  StreamId,
  TransferMessage,
  TransferPages,
} from './transport/page-transport.ts';
