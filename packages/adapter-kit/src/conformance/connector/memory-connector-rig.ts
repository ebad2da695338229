import type { KvConnector } from '../../connector/kv-connector.ts';
import { MemoryConnector } from '../../memory/memory-connector.ts';
import { MemoryPageStore, MemoryPages } from '../../memory/memory-page-store.ts';
import type { PageStore } from '../../page-store/page-store.ts';
import type { KvConnectorHarness } from './harness.ts';

/** The memory connector, as it is or with something around it, on a store that is as it should be or not. */
export function memoryConnectorHarness(
  asyncLoad: boolean,
  wrap: (connector: KvConnector) => KvConnector = (connector) => connector,
  storeOf: (pages: MemoryPages) => PageStore = (pages) => new MemoryPageStore({ pages }),
): KvConnectorHarness {
  const media = new WeakMap<KvConnector, MemoryPages>();
  const open = (pages: MemoryPages) => {
    const connector = wrap(new MemoryConnector({ store: storeOf(pages), asyncLoad }));
    media.set(connector, pages);
    return connector;
  };
  const pagesOf = (connector: KvConnector) => media.get(connector) as MemoryPages;
  return {
    create: () => open(new MemoryPages()),
    another: (connector) => open(pagesOf(connector)),
    spoil(connector) {
      for (const page of pagesOf(connector).byKey.values()) page.sealed[page.sealed.length - 1] ^= 4;
    },
  };
}
