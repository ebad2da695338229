import { MemoryPageStore } from '@bufferwise/adapter-kit/memory';
import { expect, test } from 'vitest';
import { encodedStore } from '../src/encoding/encoded-store.ts';
import { exportPrefix, importPrefix, inspectPrefix } from '../src/prefix-file/index.ts';
import { contents, fill, mixedLayout as layout } from './support/prefixes.ts';

const tokens = Array.from({ length: 24 }, (_, i) => i);

test('a browser writes prefix files and reads them, out of blobs and streams, between encoded stores', async () => {
  const store = encodedStore(new MemoryPageStore(), { layout });
  await fill(store, layout, tokens);
  const file = await exportPrefix({ store, layout, tokens });
  if (file === null) throw new Error('nothing to export');
  const blob = await new Response(file.stream()).blob();
  expect(await inspectPrefix(blob, { verify: true })).toMatchObject({ numPages: file.info.numPages, fileBytes: blob.size });
  for (const source of [blob, blob.stream(), new Uint8Array(await blob.arrayBuffer())]) {
    const into = encodedStore(new MemoryPageStore(), { layout });
    expect((await importPrefix(source, { store: into, layout })).isComplete).toBe(true);
    // State of the last block alone, and all of full attention.
    const [full, , state] = await contents(into, layout, tokens);
    const from = await contents(store, layout, tokens);
    expect(full).toEqual(from[0]);
    expect(state).toEqual(from[2].map((page, block) => (block === 5 ? page : null)));
  }
  const error = await importPrefix(blob.slice(0, blob.size - 1), { store, layout }).catch((reason) => reason);
  expect(error.code).toBe('prefix-file-damaged');
});
