import type { BlockKey } from '@bufferwise/cache-manager';
import type { LayerGroupId } from '@bufferwise/core-policy';
import type { PageKey } from '../page-store/page-key.ts';

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

/** What the worker of a memory connector does in a step. */
export interface MemoryOrders {
  readonly loads: readonly (RequestOrder & { readonly async: boolean })[];
  readonly saves: readonly RequestOrder[];
}
