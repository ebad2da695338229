import { OpfsPageStore } from '../../src/opfs/opfs-page-store.ts';
import { pageOf } from '../support/seeded-pages.ts';
import { pagesWorker } from './stores.ts';

/** A page of its own, in a frame, that keeps pages in the directory that it is told, and answers what became of them. */
export type FrameOrder =
  | { readonly order: 'put'; readonly directory: string; readonly keys: readonly string[] }
  | { readonly order: 'get'; readonly directory: string; readonly keys: readonly string[] };

/** Another one for each time that the page is loaded. */
const world = crypto.randomUUID();

let store: Promise<OpfsPageStore> | undefined;

addEventListener('message', async ({ data, ports }: MessageEvent<FrameOrder>) => {
  if (data?.order === undefined) return;
  store ??= OpfsPageStore.open({ worker: pagesWorker, directory: data.directory });
  const keys = data.keys.map((key) => ({ key }));
  const value =
    data.order === 'put'
      ? await (await store).put(keys.map(({ key }) => ({ key, bytes: pageOf(key) })))
      : await (await store).get(keys);
  ports[0].postMessage({ world, value });
});
parent.postMessage('pages-frame is ready', '*');
