import type { PageStore } from '@bufferwise/adapter-kit';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { DirectOpfsPageStore } from '../../src/opfs/direct-opfs-page-store.ts';
import { OpfsPageStore, type OpfsPageStoreOptions } from '../../src/opfs/opfs-page-store.ts';
import { isPageOf, pageOf, seeded } from '../support/seeded-pages.ts';
import type { FrameOrder } from './pages-frame.ts';
import { freshDirectory, pagesWorker, removeDirectory } from './stores.ts';

const STORED = { status: 'stored' };
const LOST = { code: 'worker-lost' };
const entriesOf = (keys: readonly string[], length?: number) => keys.map((key) => ({ key, bytes: pageOf(key, length) }));
const range = (count: number, name: string) => Array.from({ length: count }, (_, i) => `${name}-${i}`);

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** A directory that is gone after the test. */
function directoryForTest(): string {
  const directory = freshDirectory();
  ends.push(() => vi.waitFor(() => removeDirectory(directory), 5000));
  return directory;
}

async function open(options: Partial<OpfsPageStoreOptions> = {}): Promise<OpfsPageStore> {
  const store = await OpfsPageStore.open({ worker: pagesWorker, ...options, directory: options.directory ?? directoryForTest() });
  ends.push(() => store.close());
  return store;
}

async function filesOf(directory: string): Promise<{ name: string; size: number; handle: FileSystemFileHandle }[]> {
  const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle(directory);
  const files = [];
  const handles = (folder as unknown as { values(): AsyncIterableIterator<FileSystemFileHandle> }).values();
  for await (const handle of handles) files.push({ name: handle.name, size: (await handle.getFile()).size, handle });
  return files.sort((a, b) => (a.name < b.name ? -1 : 1));
}

const sizeOf = async (directory: string) => (await filesOf(directory)).reduce((sum, { size }) => sum + size, 0);

/** Everything that a store lists, which must be what was stored. @returns the keys */
async function allWhole(store: PageStore, length?: number): Promise<Set<string>> {
  const keys = new Set<string>();
  let cursor: string | undefined;
  do {
    const piece = (await store.list?.({ cursor })) ?? { keys: [], cursor: null };
    const pages = await store.get(piece.keys);
    piece.keys.forEach(({ key }, i) => {
      expect(isPageOf(key, pages[i], length), key).toBe(true);
      keys.add(key);
    });
    cursor = piece.cursor ?? undefined;
  } while (cursor !== undefined);
  return keys;
}

test('a page that is reloaded finds in its files what it had stored', async () => {
  const directory = directoryForTest();
  const frame = document.createElement('iframe');
  const script = new URL('./pages-frame.ts', import.meta.url).href;
  frame.srcdoc = `<script type="module" src="${script}"></script>`;
  ends.push(() => frame.remove());
  const ready = () =>
    new Promise<void>((resolve) => {
      const listen = ({ data, source }: MessageEvent) => {
        if (data !== 'pages-frame is ready' || source !== frame.contentWindow) return;
        removeEventListener('message', listen);
        resolve();
      };
      addEventListener('message', listen);
    });
  const tell = (order: FrameOrder) => {
    const { port1, port2 } = new MessageChannel();
    return new Promise<{ world: string; value: unknown[] }>((resolve) => {
      port1.onmessage = ({ data }) => resolve(data);
      frame.contentWindow?.postMessage(order, '*', [port2]);
    });
  };

  const first = ready();
  document.body.append(frame);
  await first;
  const keys = range(40, 'kept');
  const put = await tell({ order: 'put', directory, keys });
  expect(put.value).toEqual(keys.map(() => STORED));

  for (let reloads = 0; reloads < 3; reloads++) {
    const again = ready();
    frame.contentWindow?.location.reload();
    await again;
    const got = await tell({ order: 'get', directory, keys: [...keys, 'never-stored'] });
    expect(got.world).not.toBe(put.world);
    keys.forEach((key, i) => {
      expect(isPageOf(key, got.value[i] as Uint8Array | null), key).toBe(true);
    });
    expect(got.value.at(-1)).toBeNull();
  }
});

const ROUNDS = 30;
const QUOTA = 1_500_000;

test(`after each of ${ROUNDS} ends of the worker in the middle of work, what was finished is there, and nothing else is`, async () => {
  const directory = directoryForTest();
  const random = seeded(41);
  let found = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const worker = pagesWorker();
    const store = await OpfsPageStore.open({ worker, directory, quotaBytes: QUOTA });
    const finished: string[] = [];
    setTimeout(() => worker.terminate(), random() * 150);
    const working = (async () => {
      for (let i = 0; ; i++) {
        const entries = entriesOf(range(8, `round-${round}-${i}`));
        const outcomes = await store.put(entries);
        finished.push(...entries.filter((_, j) => outcomes[j].status === 'stored').map(({ key }) => key));
        const gone = finished.splice(finished.length - 2, 1)[0];
        await store.delete([{ key: gone }]);
        await store.get(entries);
      }
    })();
    await expect(working).rejects.toMatchObject(LOST);
    await store.close();

    const after = await open({ directory, quotaBytes: QUOTA });
    const keys = await allWhole(after);
    expect(after.statistics()).toMatchObject({ damaged: 0, quotaBytes: QUOTA });
    for (const key of finished.slice(-16)) {
      expect(keys.has(key), key).toBe(true);
      found++;
    }
    expect(after.statistics().usedBytes).toBe(await sizeOf(directory));
    expect(after.statistics().usedBytes).toBeLessThanOrEqual(QUOTA);
    await after.close();
  }
  expect(found).toBeGreaterThan(ROUNDS);
}, 300_000);

describe('what somebody did to a file while it was closed', () => {
  const random = seeded(7);
  const at = (bytes: Uint8Array) => Math.floor(random() * bytes.length);
  const noise = (length: number) => Uint8Array.from({ length }, () => random() * 256);
  const DAMAGES: Record<string, (bytes: Uint8Array) => Uint8Array> = {
    'a bit flipped': (bytes) => {
      bytes[at(bytes)] ^= 1 << (random() * 8);
      return bytes;
    },
    'a hundred bits flipped': (bytes) => {
      for (let i = 0; i < 100; i++) bytes[at(bytes)] ^= 1 << (random() * 8);
      return bytes;
    },
    'its end cut off': (bytes) => bytes.slice(0, at(bytes)),
    'noise at its end': (bytes) => Uint8Array.of(...bytes, ...noise(5000)),
    'noise in it': (bytes) => {
      bytes.set(noise(Math.min(5000, bytes.length)).subarray(0, bytes.length), 0);
      return bytes;
    },
    'a part of it twice': (bytes) => Uint8Array.of(...bytes.subarray(0, at(bytes)), ...bytes),
    'nothing in it': () => new Uint8Array(0),
  };

  test.each(Object.keys(DAMAGES))('%s: costs pages, and gives no other ones', async (name) => {
    for (let turn = 0; turn < 2; turn++) {
      const directory = directoryForTest();
      const before = await open({ directory, quotaBytes: QUOTA });
      const keys = range(40, 'page');
      await before.put(entriesOf(keys));
      await before.close();
      const files = await filesOf(directory);
      const { handle } = files[Math.floor(random() * files.length)];
      const bytes = DAMAGES[name](new Uint8Array(await (await handle.getFile()).arrayBuffer()));
      const writable = await handle.createWritable();
      await writable.write(bytes as Uint8Array<ArrayBuffer>);
      await writable.close();

      const after = await open({ directory, quotaBytes: QUOTA });
      const pages = await after.get(keys.map((key) => ({ key })));
      const whole = keys.filter((key, i) => pages[i] !== null && isPageOf(key, pages[i]));
      expect(pages.filter((page) => page !== null)).toHaveLength(whole.length);
      // Other files have theirs still.
      expect(whole.length).toBeGreaterThan(20);
      const outcomes = await after.put(entriesOf(keys));
      outcomes.forEach(({ status }, i) => {
        expect(status, keys[i]).toBe(pages[i] === null ? 'stored' : 'exists');
      });
      expect(await allWhole(after)).toEqual(new Set(keys));
      await after.close();
      const again = await open({ directory, quotaBytes: QUOTA });
      expect(await allWhole(again)).toEqual(new Set(keys));
      expect(again.statistics().damaged).toBe(0);
      await again.close();
    }
  });
});

describe('a store with a quota', () => {
  test('holds it in its files, keeps what is used, and lets go of what is not', async () => {
    const directory = directoryForTest();
    const store = await open({ directory, quotaBytes: QUOTA });
    const hot = range(10, 'hot');
    // Between pages that nobody will ask for, so that they lie in several segments and have to be moved.
    for (const [i, key] of hot.entries()) await store.put(entriesOf([key, ...range(3, `cold-${i}`)]));
    let max = 0;
    for (let i = 0; i < 60; i++) {
      await store.put(entriesOf(range(8, `passing-${i}`)));
      const pages = await store.get(hot.map((key) => ({ key })));
      expect(hot.filter((key, j) => !isPageOf(key, pages[j]))).toEqual([]);
      max = Math.max(max, await sizeOf(directory));
    }
    expect(await store.has([{ key: 'cold-0-0' }])).toEqual([false]);
    expect(max).toBeLessThanOrEqual(QUOTA);
    expect(max).toBeGreaterThan(0.9 * QUOTA);
    const keys = await allWhole(store);
    expect(keys.has('passing-59-7')).toBe(true);
    await store.close();

    const smaller = await open({ directory, quotaBytes: QUOTA / 3 });
    expect(smaller.statistics().usedBytes).toBeLessThanOrEqual(QUOTA / 3);
    expect(await sizeOf(directory)).toBeLessThanOrEqual(QUOTA / 3);
    expect((await allWhole(smaller)).size).toBeGreaterThan(5);
  });

  test('remembers the order of use when it is opened anew', async () => {
    const directory = directoryForTest();
    const first = await open({ directory, quotaBytes: 200_000 });
    await first.put(entriesOf(range(10, 'page'), 10_000));
    await first.get([{ key: 'page-0' }]);
    await first.close();
    const second = await open({ directory, quotaBytes: 200_000 });
    await second.put(entriesOf(range(13, 'other'), 10_000));
    expect(await second.has([{ key: 'page-0' }, { key: 'page-1' }])).toEqual([true, false]);
  });

  test('takes a page that is larger than a segment, and one that needs the room of all others', async () => {
    const store = await open({ quotaBytes: 1_000_000 });
    const large = { key: 'large', bytes: pageOf('large', 400_000) };
    const larger = { key: 'larger', bytes: pageOf('larger', 790_000) };
    await store.put(entriesOf(range(30, 'small'), 10_000));
    expect(await store.put([large])).toEqual([STORED]);
    expect(await store.put([larger])).toEqual([STORED]);
    expect(await allWhole(store, 790_000)).toEqual(new Set(['larger']));
    expect(await store.put([{ key: 'huge', bytes: new Uint8Array(810_000) }])).toEqual([
      { status: 'refused', reason: 'too-large' },
    ]);
  });

  test('takes a batch that is larger than the quota, and has its last pages', async () => {
    const store = await open({ quotaBytes: 400_000 });
    const keys = range(60, 'page');
    expect(await store.put(entriesOf(keys, 10_000))).toEqual(keys.map(() => STORED));
    const there = await store.has(keys.map((key) => ({ key })));
    expect(there.slice(-25)).toEqual(new Array(25).fill(true));
    expect(there[0]).toBe(false);
  });
});

describe('of two stores of one directory', () => {
  test('the second one is refused until the first is closed', async () => {
    const directory = directoryForTest();
    const first = await open({ directory });
    await expect(open({ directory, lockMs: 30 })).rejects.toMatchObject({ code: 'store-locked' });
    await first.put(entriesOf(['a']));
    await first.close();
    const second = await open({ directory, lockMs: 30 });
    expect(await allWhole(second)).toEqual(new Set(['a']));
  });

  test('the second one waits for a first that is being closed', async () => {
    const directory = directoryForTest();
    const first = await open({ directory });
    const second = open({ directory, lockMs: 20_000 });
    await first.close();
    await second;
  });

  test('the second one is not held up by a first whose worker has ended', async () => {
    const directory = directoryForTest();
    const worker = pagesWorker();
    const first = await OpfsPageStore.open({ worker, directory });
    await first.put(entriesOf(['a']));
    worker.terminate();
    const second = await open({ directory });
    expect(await allWhole(second)).toEqual(new Set(['a']));
    await expect(first.get([{ key: 'a' }])).rejects.toMatchObject(LOST);
    await first.close();
  });
});

describe('a worker', () => {
  test('that ends takes the calls under way with it, and all later ones, but no close', async () => {
    const worker = pagesWorker();
    const store = await open({ worker });
    const entries = entriesOf(range(64, 'page'), 500_000);
    const put = store.put(entries);
    const refused = expect(put).rejects.toMatchObject(LOST);
    worker.terminate();
    await refused;
    await expect(store.delete([{ key: 'a' }])).rejects.toMatchObject(LOST);
    await store.close();
    await expect(store.get([{ key: 'a' }])).rejects.toMatchObject({ code: 'plugin-closed' });
  });

  test('whose script does not load, or is another one, opens no store', async () => {
    const missing = () => new Worker(new URL('/no-such-script.js', location.href), { type: 'module' });
    await expect(open({ worker: missing })).rejects.toMatchObject(LOST);
    const other = URL.createObjectURL(new Blob(['/* nothing */'], { type: 'text/javascript' }));
    await expect(open({ worker: () => new Worker(other), startMs: 50 })).rejects.toMatchObject({
      ...LOST,
      message: expect.stringContaining('50 ms'),
    });
  });

  test('that was handed in serves several stores, and lives on when they are closed', async () => {
    const worker = pagesWorker();
    ends.push(() => worker.terminate());
    const [a, b] = [await open({ worker }), await open({ worker })];
    await a.put(entriesOf(['of-a']));
    expect(await b.has([{ key: 'of-a' }])).toEqual([false]);
    await a.close();
    await b.put(entriesOf(['of-b']));
    expect(await allWhole(b)).toEqual(new Set(['of-b']));
  });

  test('may keep its pages itself, and a page may not', async () => {
    const worker = new Worker(new URL('./direct-worker.ts', import.meta.url), { type: 'module' });
    const answer = new Promise((resolve) => worker.addEventListener('message', ({ data }) => resolve(data)));
    worker.postMessage(directoryForTest());
    expect(await answer).toEqual([Uint8Array.of(1, 2, 3), null]);
    worker.terminate();
    await expect(DirectOpfsPageStore.open()).rejects.toMatchObject({ code: 'no-opfs' });
  });
});

describe('a call', () => {
  test('with more than goes into a message is answered whole and in order', async () => {
    const store = await open();
    const keys = range(30, 'page');
    expect(await store.put(entriesOf(keys, 1_000_000))).toEqual(keys.map(() => STORED));
    const pages = await store.get(keys.map((key) => ({ key })));
    expect(keys.filter((key, i) => !isPageOf(key, pages[i], 1_000_000))).toEqual([]);
  });

  test('that is under way when the store is closed is done first', async () => {
    const directory = directoryForTest();
    const store = await open({ directory });
    const keys = range(40, 'page');
    const put = store.put(entriesOf(keys));
    await store.close();
    expect(await put).toEqual(keys.map(() => STORED));
    expect(await allWhole(await open({ directory }))).toEqual(new Set(keys));
  });

  test('rejects with the reason of its signal as soon as that is aborted', async () => {
    const store = await open();
    const caller = new AbortController();
    const put = store.put(entriesOf(range(30, 'page'), 1_000_000), { signal: caller.signal });
    caller.abort('enough');
    await expect(put).rejects.toBe('enough');
    expect(await store.put(entriesOf(['a']))).toEqual([STORED]);
  });
});

test.each([
  { directory: '' },
  { directory: '..' },
  { directory: 'a/b' },
  { quotaBytes: 0 },
  { quotaBytes: Number.NaN },
  { startMs: 0 },
])('%j opens no store', async (wrong) => {
  await expect(OpfsPageStore.open({ worker: pagesWorker, ...wrong })).rejects.toMatchObject({ code: 'invalid-option' });
});
