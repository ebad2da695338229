import { MemoryNetwork, memoryTransportPair } from '../../memory/memory-transport.ts';
import type { PageTransport } from '../../transport/page-transport.ts';
import type { PageTransportHarness } from './harness.ts';

/** The memory transport, as it is or with something around it. */
export function memoryTransportHarness(
  wrap: (transport: PageTransport) => PageTransport = (transport) => transport,
): PageTransportHarness {
  const networks = new WeakMap<PageTransport, MemoryNetwork>();
  let last: MemoryNetwork | undefined;
  return {
    create() {
      const network = new MemoryNetwork();
      last = network;
      const [near, far] = memoryTransportPair(network).map(wrap);
      networks.set(near, network);
      return [near, far];
    },
    async cut(connection) {
      if (last) last.disturb = () => null;
      await connection.send({ stream: { request: 'cut', generation: 0, group: 0 }, body: new Uint8Array(1) }).catch(() => {});
    },
    damageNext([near]) {
      const network = networks.get(near) as MemoryNetwork;
      network.disturb = (frame) => {
        network.disturb = (other) => other;
        const changed = frame.slice();
        changed[changed.length - 1] ^= 4;
        return changed;
      };
    },
  };
}
