/**
 * A connector over page stores, and what goes with any of them. The stores themselves are sub-paths.
 *
 * @packageDocumentation
 */

export { type Clock, systemClock } from './clock.ts';
export { type ComposedStore, type ComposedStoreOptions, composedStore, type StoreFaults } from './composed/composed-store.ts';
export {
  type EncodedStore,
  type EncodedStoreOptions,
  type EncodedStoreStatistics,
  encodedStore,
} from './encoding/encoded-store.ts';
export type { PageEncoding } from './encoding/page-codec.ts';
export type {
  AdmissionOptions,
  BudgetOptions,
  PageStoreConnectorOptions,
  TimeoutOptions,
} from './engine/connector-options.ts';
export type { ConnectorStatistics, GroupCounts } from './engine/connector-statistics.ts';
export { goodPrefix } from './engine/good-prefix.ts';
export { PageStoreConnector } from './engine/page-store-connector.ts';
export { ConnectorError, type ConnectorErrorCode } from './errors.ts';
export { NearPageStore, type NearPageStoreOptions } from './near/near-page-store.ts';
