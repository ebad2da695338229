/** Three requests on one beginning, on a device made of host memory: what each buffer group supplies, and what is left to compute. */
import { HostPageDevice, KvCacheManager } from '@bufferwise/cache-manager';
import { defineCacheConfig } from '@bufferwise/core-policy';

const keysAndValues = [
  { role: 'key', size: 4096 },
  { role: 'value', size: 4096 },
];
const config = defineCacheConfig({
  tokensPerBlock: 16,
  tiers: [{ tier: 'device', quota: 64 << 20 }],
  layers: [
    { type: 'attention', layerId: 0, buffers: keysAndValues },
    { type: 'attention', layerId: 1, buffers: keysAndValues, slidingWindowSize: 32, reusePolicy: 'optional' },
    {
      type: 'ssm',
      layerId: 2,
      buffers: [
        { role: 'ssm_state', size: 16384 },
        { role: 'replay_x', size: 2048, reusePolicy: 'private' },
      ],
    },
  ],
});
const manager = new KvCacheManager({ config, device: new HostPageDevice() });
const names = manager.bufferGrouping.map(
  (buffers) => `layer ${buffers[0].layerId} ${buffers.map(({ role }) => role).join(', ')}`,
);

/** One request: what it finds, and what is left to compute. Where a model would run, nothing does. */
async function request(name: string, prompt: number[]): Promise<void> {
  const cache = manager.createKvCache({ tokens: prompt });
  const found = cache.numCommittedTokens;
  console.log(`\n${name}: ${prompt.length} tokens, ${found} found, ${prompt.length - found} to compute`);
  for (const { groupId, policy, coverage } of cache.reuseStatus) {
    const ranges = coverage.map(([begin, end]) => `${begin} to ${end}`).join(', ') || 'nothing';
    console.log(`  ${names[groupId].padEnd(18)}  ${policy.padEnd(8)}  supplies ${ranges}`);
  }
  // An optional group is used where it is selected, and must be computed again where it is not.
  const optional = cache.reuseStatus.filter(({ policy }) => policy === 'optional');
  const selected = optional.filter(({ complete }) => complete).map(({ groupId }) => groupId);
  await cache.resume({ optionalReuseGroups: selected });
  cache.resize(prompt.length, found);
  cache.commit(prompt.slice(found));
  cache.close();
}

const beginning = Array.from({ length: 96 }, (_, i) => i);
await request('first request', beginning);
await request('second request', [...beginning, 500, 501, 502]);
await request('the second, continued', [...beginning, 500, 501, 502, 600, 601]);
await manager.close();
