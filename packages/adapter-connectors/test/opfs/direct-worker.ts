import { DirectOpfsPageStore } from '../../src/opfs/direct-opfs-page-store.ts';

/** A worker that keeps pages itself, and says what it got back. */
addEventListener('message', async ({ data: directory }: MessageEvent<string>) => {
  const store = await DirectOpfsPageStore.open({ directory });
  await store.put([{ key: 'a', bytes: Uint8Array.of(1, 2, 3) }]);
  const pages = await store.get([{ key: 'a' }, { key: 'b' }]);
  await store.close();
  postMessage(pages);
});
