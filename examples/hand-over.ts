/** Two workers in one process: one reads prompts, the other one answers them, and what it has already is not sent again. */
import { TransferReceiver, TransferSender } from '@bufferwise/adapter-disaggregation';
import { MessagePortTransport } from '@bufferwise/adapter-disaggregation/message-port-transport';
import { HostPageDevice, type HostPoolMemory, type KvCache, KvCacheManager } from '@bufferwise/cache-manager';
import { defineCacheConfig } from '@bufferwise/core-policy';

const config = defineCacheConfig({
  tokensPerBlock: 16,
  tiers: [{ tier: 'device', quota: 64 << 20 }],
  layers: [
    { type: 'attention', layerId: 0, buffers: [{ role: 'keys_values', size: 8192 }] },
    { type: 'attention', layerId: 1, buffers: [{ role: 'keys_values', size: 8192 }], slidingWindowSize: 32 },
    { type: 'ssm', layerId: 2, buffers: [{ role: 'ssm_state', size: 16384 }] },
  ],
});

function makeWorker() {
  const device = new HostPageDevice();
  return { device, manager: new KvCacheManager({ config, device }), modelFingerprint: 'a model' };
}
const [prefill, decode] = [makeWorker(), makeWorker()];

/** Where a model would run: the pages that a request has, and a byte for each that follows from all tokens up to its end. */
function* pagesOf({ manager }: typeof prefill, cache: KvCache, tokens: readonly number[]) {
  for (const { layerId, type, buffers } of config.layers) {
    const { bytes, spec } = manager.poolMemory(layerId, buffers[0].role) as HostPoolMemory;
    const groupId = manager.getBufferGroupId(layerId, buffers[0].role);
    const slots = type === 'ssm' ? [cache.ssmBlockBaseIndex(groupId)] : cache.basePageIndices(groupId);
    for (const [block, slot] of slots.entries()) {
      if (slot < 0) continue; // Out of the window.
      const end = type === 'ssm' ? tokens.length : (block + 1) * config.tokensPerBlock;
      const content = tokens.slice(0, end).reduce((sum, token) => (sum * 31 + token) & 255, layerId);
      yield { bytes: bytes.subarray(slot * spec.slotBytes, (slot + 1) * spec.slotBytes), content };
    }
  }
}

const { port1, port2 } = new MessageChannel();
const [here, there] = [new MessagePortTransport({ port: port1 }), new MessagePortTransport({ port: port2 })];
const listener = await there.listen('decode');
const connection = await here.connect('decode');

const sender = new TransferSender(prefill);
const receiver = new TransferReceiver({
  ...decode,
  admit({ note }) {
    const tokens: number[] = JSON.parse(note);
    return {
      tokens,
      arrived({ cache }) {
        const same = [...pagesOf(decode, cache, tokens)].every(({ bytes, content }) => bytes.every((byte) => byte === content));
        console.log(`  here with ${cache.historyLength} tokens, pages ${same ? 'as they were computed' : 'DIFFER'}`);
        cache.close(); // Or answer, and close then.
      },
    };
  },
});
const served = receiver.serve(await listener.accept());

async function handOver(request: string, tokens: number[]): Promise<void> {
  const cache = prefill.manager.createKvCache({ tokens });
  const found = cache.numCommittedTokens;
  console.log(`\n${request}: ${tokens.length} tokens, ${tokens.length - found} of them to be computed`);
  await cache.resume();
  cache.resize(tokens.length, found);
  for (const { bytes, content } of pagesOf(prefill, cache, tokens)) bytes.fill(content);
  cache.commit(tokens.slice(found));
  const moving = { pages: cache, release: () => cache.close(), note: JSON.stringify(tokens) };
  const transfer = sender.send(connection, { request, generation: 0, tokens, ...moving });
  transfer.progress(tokens.length); // With a model: after every step.
  for (const { lifecycle, pagesLacked, pagesMoved, bytesMoved } of (await transfer.done).groups) {
    const name = lifecycle.kind === 'ssm' ? 'state' : lifecycle.windowSize === null ? 'full attention' : 'sliding window';
    console.log(`  ${name}: ${pagesLacked} pages lacked, ${pagesMoved} moved, ${bytesMoved} bytes`);
  }
}

const beginning = Array.from({ length: 128 }, (_, i) => i);
await handOver('a prompt', beginning);
await handOver('another one on the same beginning', [...beginning, ...beginning.slice(0, 32)]);
await handOver('the first one again', beginning);

await Promise.all([here.close(), there.close(), served, prefill.manager.close(), decode.manager.close()]);
port1.close();
