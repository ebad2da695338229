import { type ConnectorMemory, connectorMemory } from '@bufferwise/adapter-kit';
import type { KvCache, KvCacheManager, PageDevice } from '@bufferwise/cache-manager';
import type { LayerGroupId } from '@bufferwise/core-policy';
import { type BufferForms, layoutOf, type TransferGroup, type TransferLayout } from '../transfer/transfer-layout.ts';

/** Where the pages of a request are: a `KvCache`, or what stands for one that comes and goes. Indices are -1 while it is not on the device. */
export type PageSlots = Pick<KvCache, 'basePageIndices' | 'ssmBlockBaseIndex'>;

/** A piece of a page: of `size` bytes, where it is in a page that travels, and where in one as connectors have it. */
interface Piece {
  readonly size: number;
  readonly travelling: number;
  readonly stored: number;
}

/** What travels of a manager's requests: `transferLayout` of its config. Throws as that. */
export function managerLayout({ layout, lifecycles }: KvCacheManager, forms?: BufferForms): TransferLayout {
  return layoutOf(layout.tokensPerBlock, lifecycles, ({ layerId, role }) => layout.bufferAttr(layerId, role), forms);
}

/** The pages of a manager on its device, group by group of its transfer layout, as they travel. */
export class ManagerPages {
  readonly layout: TransferLayout;
  readonly #memory: ConnectorMemory;
  readonly #groups: readonly {
    readonly groupId: LayerGroupId;
    readonly storedBytes: number;
    readonly pieces: readonly Piece[];
  }[];

  /** @throws {TransferError} `invalid-transfer-options` on a form that does not fit its buffer */
  constructor(manager: KvCacheManager, device: PageDevice, forms?: BufferForms) {
    const { layout } = manager;
    this.layout = managerLayout(manager, forms);
    this.#memory = connectorMemory(manager, device);
    this.#groups = this.layout.groups.map((group) => {
      const groupId = manager.getBufferGroupId(group.buffers[0].layerId, group.buffers[0].role);
      return { groupId, storedBytes: layout.pageBytes(groupId), pieces: piecesOf(manager, groupId, group) };
    });
  }

  /** The slot of a block now, or of the state; -1 while there is none on the device. */
  slotOf(pages: PageSlots, group: number, block: number): number {
    const { groupId } = this.#groups[group];
    if (this.layout.groups[group].lifecycle.kind === 'ssm') return pages.ssmBlockBaseIndex(groupId);
    return pages.basePageIndices(groupId)[block] ?? -1;
  }

  /** Reads pages of a group. The copies are handed in before the call returns: what becomes of the slots later does not count. */
  async read(group: number, slots: readonly number[]): Promise<Uint8Array[]> {
    const { groupId, pieces } = this.#groups[group];
    const { pageBytes } = this.layout.groups[group];
    const stored = await this.#memory.readPages(groupId, slots);
    return stored.map((from) => {
      const page = new Uint8Array(pageBytes);
      for (const piece of pieces) page.set(from.subarray(piece.stored, piece.stored + piece.size), piece.travelling);
      return page;
    });
  }

  /** Overwrites a page of a group. */
  write(group: number, slot: number, page: Uint8Array): void {
    const { groupId, storedBytes, pieces } = this.#groups[group];
    const stored = new Uint8Array(storedBytes);
    for (const { travelling, stored: at, size } of pieces) stored.set(page.subarray(travelling, travelling + size), at);
    this.#memory.writePages(groupId, [slot], [stored]);
  }
}

/** Buffers that follow each other in both forms are one piece. */
function piecesOf(manager: KvCacheManager, groupId: LayerGroupId, { buffers }: TransferGroup): Piece[] {
  const { layout } = manager;
  // As `connectorMemory` has them: the slots of all pools, one behind the other, in the order in which the group's buffers name them.
  const poolOffsets = new Map<number, number>();
  let end = 0;
  for (const { layerId, role } of manager.bufferGrouping[groupId]) {
    const { poolGroup, pool } = layout.bufferAttr(layerId, role);
    if (poolOffsets.has(pool)) continue;
    poolOffsets.set(pool, end);
    end += layout.poolGroups[poolGroup].pools[pool].slotBytes;
  }
  const pieces: Piece[] = [];
  let travelling = 0;
  for (const { layerId, role, size } of buffers) {
    const { pool, offset } = layout.bufferAttr(layerId, role);
    const stored = (poolOffsets.get(pool) as number) + offset;
    const last = pieces.at(-1);
    if (last !== undefined && last.stored + last.size === stored) pieces[pieces.length - 1] = { ...last, size: last.size + size };
    else pieces.push({ size, travelling, stored });
    travelling += size;
  }
  return pieces;
}
