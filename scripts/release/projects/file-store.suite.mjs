/** What an author of a plugin does: the suite that proves a page store, here on one of ours. */
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { FilePageStore } from '@bufferwise/adapter-connectors/file-store';
import { describePageStore } from '@bufferwise/adapter-kit/conformance/page-store';

const folders = new WeakMap();
const open = async (folder, options) => {
  const store = await FilePageStore.open(folder, options);
  folders.set(store, folder);
  return store;
};

describePageStore('an installed file store', {
  create: async ({ quotaBytes } = {}) => open(await mkdtemp(join(import.meta.dirname, 'store-')), { quotaBytes }),
  async reopen(store) {
    await store.close();
    return open(folders.get(store));
  },
  destroy: (store) => store.close(),
});
