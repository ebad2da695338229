/** What a project in CommonJS does: Node from 20.19 on lets `require` load ES modules. Prints one line of JSON. */
const { HostPageDevice, KvCacheManager } = require('@bufferwise/cache-manager');
const { BufferwiseError, defineCacheConfig } = require('@bufferwise/core-policy');
const { MemoryPageStore } = require('@bufferwise/adapter-kit/memory');

async function main() {
  const config = defineCacheConfig({
    tokensPerBlock: 4,
    tiers: [{ tier: 'device', quota: 1 << 20 }],
    layers: [{ type: 'attention', layerId: 0, buffers: [{ role: 'key', size: 64 }] }],
  });
  const manager = new KvCacheManager({ config, device: new HostPageDevice() });
  const first = manager.createKvCache();
  await first.resume();
  first.resize(8);
  first.commit([1, 2, 3, 4, 5, 6, 7, 8]);
  first.close();
  const reused = manager.probeReuse([1, 2, 3, 4, 5, 6, 7, 8, 9]);
  await manager.close();
  let code;
  try {
    defineCacheConfig({ tokensPerBlock: 4, tiers: [], layers: [] });
  } catch (error) {
    code = BufferwiseError.isInstance(error) ? error.code : String(error);
  }
  // The same module, however it is loaded: no second copy with classes of its own.
  const { KvCacheManager: imported } = await import('@bufferwise/cache-manager');
  console.log(JSON.stringify({ reused, code, isOne: imported === KvCacheManager, memory: typeof MemoryPageStore }));
}

main();
