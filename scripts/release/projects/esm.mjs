/** What a project in ES modules on Node does with the installed packages. Prints one line of JSON. */
import { FilePageStore } from '@bufferwise/adapter-connectors/file-store';
import { sealPage } from '@bufferwise/adapter-kit';
import { defineCacheConfig, LifecycleRegistry, presetLayers } from '@bufferwise/core-policy';
import { StorageLayout } from '@bufferwise/scratch-allocator';

const config = defineCacheConfig({
  tokensPerBlock: 4,
  tiers: [{ tier: 'device', quota: 1 << 20 }],
  layers: [
    {
      type: 'attention',
      layerId: 0,
      buffers: [
        { role: 'key', size: 64 },
        { role: 'value', size: 64, reusePolicy: 'optional' },
      ],
    },
    { type: 'ssm', layerId: 1, buffers: [{ role: 'replay_x', size: 64, reusePolicy: 'private' }] },
  ],
});
const registry = LifecycleRegistry.fromConfig(config);
const policies = registry.bufferGrouping.map((_, id) => registry.get(id).policy);
const layout = StorageLayout.fromConfig(config, registry);
const preset = presetLayers(
  { model_type: 'llama', hidden_size: 64, num_attention_heads: 4, num_hidden_layers: 2, num_key_value_heads: 2 },
  { tokensPerBlock: 16 },
);

const pages = [{ key: 'page-1', bytes: Uint8Array.of(1, 2, 3, 4) }];
const first = await FilePageStore.open('pages');
const [stored] = await first.put(pages);
await first.close();
const second = await FilePageStore.open('pages');
const [found, missing] = await second.get([{ key: 'page-1' }, { key: 'page-2' }]);
await second.close();

console.log(
  JSON.stringify({
    policies,
    layers: preset.layers.length,
    offset: layout.bufferAttr(0, 'key').offset,
    stored: stored.status,
    found: [...found],
    missing,
    sealedIsLonger: sealPage('page-1', pages[0].bytes).length > 4,
  }),
);
