import type { ManagerState } from '../manager-state.ts';
import type { PageId } from '../page/page-table.ts';
import type { PageDevice } from '../ports/page-device.ts';
import { takeOffDevice } from '../request/commit.ts';
import { losePages } from '../request/lose-pages.ts';

/**
 * The device is gone, and what only it held is lost. Active requests are suspended; those that lost pages which they need
 * begin again from what colder tiers still hold. Does nothing while there is no device.
 */
export function loseDevice(manager: ManagerState): void {
  const { storage, open } = manager;
  const { pages } = storage;
  if (storage.device === null || manager.closed) return;
  for (const boarding of [...storage.boardings]) boarding.cancel();
  for (const request of open) if (request.status === 'active') takeOffDevice(request);
  const lost: PageId[] = [];
  for (const page of pages) if (pages.tier[page] === 0) lost.push(page);
  losePages(manager, lost);
  storage.loseDevice();
}

/** Goes on with another device: with as many slots as before, all of them free. Settles once the memory is known to exist. */
export async function restoreDevice(manager: ManagerState, device: PageDevice): Promise<void> {
  loseDevice(manager);
  const { storage } = manager;
  const pools = storage.createPools(
    device,
    storage.poolGroups.map(({ slots }) => slots.slots),
  );
  storage.replacePools(pools);
  storage.device = device;
  try {
    await storage.ready();
  } catch (error) {
    if (storage.device === device) loseDevice(manager);
    throw error;
  }
}
