import type { PageKey, PageStore } from '@bufferwise/adapter-kit';
import { describePageStore } from '@bufferwise/adapter-kit/conformance/page-store';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { S3PageStore, type S3PageStoreOptions } from '../src/s3/s3-page-store.ts';
import { ACCESS_KEY_ID, REGION, S3Server, SECRET_ACCESS_KEY } from './support/s3-server.ts';

let server: S3Server;
beforeAll(async () => {
  server = await S3Server.start();
});
afterAll(() => server.stop());

const open = (options: Partial<S3PageStoreOptions> = {}) =>
  new S3PageStore({
    bucketUrl: server.bucketUrl,
    region: REGION,
    accessKeyId: ACCESS_KEY_ID,
    secretAccessKey: SECRET_ACCESS_KEY,
    ...options,
  });

let numPrefixes = 0;
const prefixes = new WeakMap<PageStore, string>();
const openUnder = (keyPrefix: string) => {
  const store = open({ keyPrefix, timeoutMs: 30_000 });
  prefixes.set(store, keyPrefix);
  return store;
};

describePageStore('S3', {
  create: () => openUnder(`suite/${numPrefixes++}/`),
  tamper(store, { key }: PageKey, change) {
    const name = `${prefixes.get(store)}${key}`;
    const object = server.objects.get(name);
    if (object !== undefined) server.objects.set(name, Buffer.from(change(new Uint8Array(object))));
  },
  async reopen(store) {
    await store.close();
    return openUnder(prefixes.get(store) as string);
  },
  another: (store) => openUnder(prefixes.get(store) as string),
});

test('every request of the suite was signed as the server expects', () => {
  expect(server.forged).toEqual([]);
});

describe('a bucket in trouble', () => {
  const bytes = Uint8Array.from({ length: 5000 }, (_, i) => i);
  const page = { key: 'a', bytes };
  const FULL = { status: 'refused', reason: 'full' };
  let store: S3PageStore;
  beforeEach(async () => {
    store = open({ timeoutMs: 300, backoff: { minMs: 60_000, maxMs: 60_000 }, keyPrefix: 'trouble/' });
    await store.put([page]);
  });
  afterEach(async () => {
    server.fault = () => false;
    server.objects.clear();
    server.forged.length = 0;
    await store.close();
  });

  test.each([400, 403, 500, 503])('status %d is a miss and a refusal', async (status) => {
    server.fault = (_request, response) => {
      response.writeHead(status).end();
      return true;
    };
    expect(await store.get([page])).toEqual([null]);
    expect(await store.put([{ key: 'b', bytes }])).toEqual([FULL]);
    expect(store.statistics()).toMatchObject({ serverErrors: 2, misses: 1, refused: 1 });
  });

  test('silence costs a call its time, and soon nothing', async () => {
    server.fault = () => true;
    for (let i = 0; i < 50; i++) expect(await store.get([page])).toEqual([null]);
    expect(await store.has([page])).toEqual([false]);
    expect(await store.delete([page])).toEqual([false]);
    expect(store.statistics()).toMatchObject({ timeouts: 2, skipped: 50, misses: 50 });
    await expect(store.list()).rejects.toMatchObject({ code: 'store-unavailable' });
  });

  test('answers that end in the middle are misses', async () => {
    server.fault = (_request, response) => {
      response.writeHead(200, { 'content-length': 5016 });
      response.write('BWPG');
      response.socket?.end();
      return true;
    };
    expect(await store.get([page])).toEqual([null]);
    expect(store.statistics()).toMatchObject({ connectionErrors: 1 });
  });

  test('a body that nothing ends costs its call the time, and no place among those under way', async () => {
    let isEndless = true;
    const begun = new Uint8Array(10);
    const one = open({
      timeoutMs: 300,
      keyPrefix: 'trouble/',
      maxRequestsInFlight: 1,
      backoff: { minMs: 1, maxMs: 1 },
      fetch: (request, init) =>
        isEndless
          ? Promise.resolve(new Response(new ReadableStream({ start: (controller) => controller.enqueue(begun) })))
          : fetch(request, init),
    });
    expect(await one.get([page])).toEqual([null]);
    isEndless = false;
    await vi.waitFor(async () => expect(await one.get([page])).toEqual([bytes]), 30_000);
    expect(one.statistics()).toMatchObject({ timeouts: 1, hits: 1 });
    await one.close();
  });

  test('a hang-up is a miss', async () => {
    server.fault = (request) => {
      request.socket.destroy();
      return true;
    };
    expect(await store.get([page])).toEqual([null]);
    expect(store.statistics().connectionErrors).toBe(1);
  });

  test('of a huge object nothing is read, announced or not', async () => {
    const small = open({ maxPageBytes: 1000, keyPrefix: 'trouble/' });
    expect(await small.has([page])).toEqual([false]);
    expect(await small.get([page])).toEqual([null]);
    expect(small.statistics()).toMatchObject({ damaged: 1, bytesRead: 0 });
    server.fault = ({ method }, response) => {
      if (method !== 'GET') return false;
      response.writeHead(200);
      const more = () => {
        if (!response.destroyed) response.write(Buffer.alloc(65_536), more);
      };
      more();
      return true;
    };
    expect(await small.get([page])).toEqual([null]);
    await small.close();
  });

  test('damage on the way removes nothing', async () => {
    let numDamaged = 0;
    server.fault = ({ method }, response) => {
      if (method !== 'GET' || numDamaged++ > 0) return false;
      response.end('nonsense');
      return true;
    };
    expect(await store.get([page])).toEqual([bytes]);
    expect(store.statistics()).toMatchObject({ damaged: 0, hits: 1 });
  });

  test('a write that meets another one is tried again', async () => {
    let numConflicts = 0;
    server.fault = ({ method }, response) => {
      if (method !== 'PUT' || numConflicts++ > 1) return false;
      response.writeHead(409).end();
      return true;
    };
    expect(await store.put([{ key: 'b', bytes }])).toEqual([{ status: 'stored' }]);
  });

  test('a wrong secret gets nothing, and says so in the statistics', async () => {
    const stranger = open({ secretAccessKey: 'guessed', keyPrefix: 'trouble/' });
    expect(await stranger.get([page])).toEqual([null]);
    expect(stranger.statistics().serverErrors).toBe(1);
    expect(server.forged).toEqual(['the signature is another']);
    await stranger.close();
  });

  test('an aborted call ends at once with the reason', async () => {
    server.fault = () => true;
    const caller = new AbortController();
    const call = store.get([page], { signal: caller.signal });
    caller.abort('enough');
    await expect(call).rejects.toBe('enough');
    expect(store.statistics()).toMatchObject({ timeouts: 0, connectionErrors: 0 });
  });

  test('what others put into the bucket is not listed', async () => {
    server.objects.set('trouble/UPPER', Buffer.from('x'));
    server.objects.set('elsewhere/a', Buffer.from('x'));
    expect(await store.list()).toEqual({ keys: [{ key: 'a' }], cursor: null });
  });
});

test.each([
  { bucketUrl: 'pages' },
  { bucketUrl: 'ftp://host/pages' },
  { keyPrefix: 'a b' },
  { maxBatch: 1001 },
  { timeoutMs: 0 },
])('%j opens no store', (wrong) => {
  expect(() => open(wrong)).toThrowError(expect.objectContaining({ code: 'store-options' }));
});
