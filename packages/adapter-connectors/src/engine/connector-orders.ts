import type { PageKey } from '@bufferwise/adapter-kit';
import type { BlockKey } from '@bufferwise/cache-manager';
import type { LayerGroupId } from '@bufferwise/core-policy';

/** A page to be moved. */
export interface PageOrder {
  readonly groupId: LayerGroupId;
  readonly slot: number;
  readonly name: PageKey;
  readonly block: BlockKey;
}

/** What one request has a worker move in a step. */
export interface RequestOrder {
  readonly id: number;
  readonly pages: readonly PageOrder[];
}

/** A load of one request. `async`: beside the steps. */
export interface LoadOrder extends RequestOrder {
  readonly async: boolean;
}

/** What a worker does in a step. */
export interface ConnectorOrders {
  readonly loads: readonly LoadOrder[];
  readonly saves: readonly RequestOrder[];
  /** Requests that gave up while they were loading: nothing more of them is written. */
  readonly cancelled: readonly number[];
}
