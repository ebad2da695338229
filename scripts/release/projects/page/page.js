/** What a web page does with the installed packages, built by any bundler. `window.answer` says what came of it. */
import { PageStoreConnector } from '@bufferwise/adapter-connectors';
import { openBrowserStore } from '@bufferwise/adapter-connectors/browser-store';
import { IndexedDbPageStore } from '@bufferwise/adapter-connectors/indexeddb-store';
import { MessagePortTransport } from '@bufferwise/adapter-disaggregation/message-port-transport';
import { WebSocketTransport } from '@bufferwise/adapter-disaggregation/websocket-transport';
import { HostPageDevice, KvCacheManager } from '@bufferwise/cache-manager';
import { OpfsTierStore } from '@bufferwise/cache-manager/opfs-tier-store';
import { defineCacheConfig } from '@bufferwise/core-policy';
import { WebGpuPageDevice } from '@bufferwise/gpu-kernels';
import { HybridEngine, modelFingerprint, readModel } from '@bufferwise/hybrid-engine';

const tokens = (count) => Array.from({ length: count }, (_, i) => i);

async function reuseOn(device) {
  const config = defineCacheConfig({
    tokensPerBlock: 16,
    tiers: [{ tier: 'device', quota: 1 << 20 }],
    layers: [
      { type: 'attention', layerId: 0, buffers: [{ role: 'key', size: 256 }] },
      { type: 'ssm', layerId: 1, buffers: [{ role: 'ssm_state', size: 1024 }] },
    ],
  });
  const manager = new KvCacheManager({ config, device });
  const first = manager.createKvCache();
  await first.resume();
  first.resize(100);
  first.commit(tokens(100));
  first.close();
  const second = manager.createKvCache({ tokens: tokens(120) });
  const reused = second.numCommittedTokens;
  const resumed = await second.resume();
  second.close();
  await manager.close();
  return resumed ? reused : -1;
}

async function answerTwice(device, store) {
  const files = ['config.json', 'tokenizer.json', 'model.safetensors'].map(async (name) => {
    const response = await fetch(`../model/${name}`);
    return new Uint8Array(await response.arrayBuffer());
  });
  const [config, tokenizer, weights] = await Promise.all(files);
  const model = readModel({ config, tokenizer, weights });
  const connector = new PageStoreConnector(store);
  const engine = await HybridEngine.create({ model, device, outside: { connector, modelFingerprint: modelFingerprint(model) } });
  const prompt = model.tokenizer.encode(
    'Call me Ishmael. Some years ago, never mind how long precisely, having little or no money in my purse',
  );
  const answers = [];
  for (let i = 0; i < 2; i++) answers.push(await engine.complete({ prompt, maxNewTokens: 3 }));
  await engine.saved();
  await engine.close();
  return answers.map(({ tokens, report }) => ({ tokens, reused: report.reusedTokens }));
}

async function use() {
  const adapter = await navigator.gpu.requestAdapter();
  const device = await adapter.requestDevice();
  const { store, kind } = await openBrowserStore({
    worker: () => new Worker(new URL('./pages-worker.js', import.meta.url), { type: 'module' }),
  });
  const database = await IndexedDbPageStore.open({ database: 'pages' });
  await database.put([{ key: 'page-1', bytes: Uint8Array.of(1, 2, 3) }]);
  const [page] = await database.get([{ key: 'page-1' }]);
  const reused = { host: await reuseOn(new HostPageDevice()), gpu: await reuseOn(new WebGpuPageDevice(device)) };
  const answers = await answerTwice(device, store);
  const classes = [MessagePortTransport, WebSocketTransport, OpfsTierStore].map((each) => typeof each);
  return { reused, answers, kind, stored: store.statistics().stored, page: [...page], classes };
}

window.answer = await use().catch((error) => ({ error: String(error?.stack ?? error) }));
