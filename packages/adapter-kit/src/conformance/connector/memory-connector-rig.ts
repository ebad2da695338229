import type { KvConnector } from '../../connector/kv-connector.ts';
import { MemoryConnector } from '../../memory/memory-connector.ts';
import { MemoryPageStore, MemoryPages } from '../../memory/memory-page-store.ts';
import type { KvConnectorHarness } from './harness.ts';

/** The memory connector, as it is or with something around it. */
export function memoryConnectorHarness(
  asyncLoad: boolean,
  wrap: (connector: KvConnector) => KvConnector = (connector) => connector,
): KvConnectorHarness {
  const media = new WeakMap<KvConnector, MemoryPages>();
  const open = (pages: MemoryPages) => {
    const connector = wrap(new MemoryConnector({ store: new MemoryPageStore({ pages }), asyncLoad }));
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
