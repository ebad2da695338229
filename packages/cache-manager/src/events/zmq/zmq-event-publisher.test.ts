import { defineCacheConfig } from '@bufferwise/core-policy';
import { decode } from '@msgpack/msgpack';
import { afterEach, describe, expect, test } from 'vitest';
import { Dealer, Request, Subscriber } from 'zeromq';
import { full, model, seq } from '../../../test/support/stage.ts';
import { HostPageDevice, KvCacheManager, type KvEvent } from '../../index.ts';
import { ZmqEventPublisher, type ZmqEventPublisherOptions } from './index.ts';

const LOCAL = 'tcp://127.0.0.1:*';
const open: { close(): unknown }[] = [];

afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close();
});

async function publisherOf(options: ZmqEventPublisherOptions = {}): Promise<ZmqEventPublisher> {
  const publisher = await ZmqEventPublisher.open({ endpoint: LOCAL, now: () => 1.5, ...options });
  open.push(publisher);
  return publisher;
}

/** A subscriber that is known to be connected: it has had a batch already. */
async function subscriberOf(publisher: ZmqEventPublisher, topic = ''): Promise<Subscriber> {
  const subscriber = new Subscriber({ receiveTimeout: 20 });
  open.push(subscriber);
  subscriber.connect(publisher.endpoint);
  subscriber.subscribe(topic);
  for (;;) {
    publisher.push([CLEARED]);
    const received = await subscriber.receive().catch(() => null);
    if (received !== null) break;
  }
  await publisher.flushed();
  subscriber.receiveTimeout = 100;
  while ((await subscriber.receive().catch(() => null)) !== null);
  subscriber.receiveTimeout = 5000;
  return subscriber;
}

const CLEARED: KvEvent = { id: 0, type: 'cleared' };
const sequenceOf = (frame: Buffer) => Number(frame.readBigInt64BE());
const from = (sequence: number) => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(sequence));
  return bytes;
};

async function replayed(publisher: ZmqEventPublisher, start: number): Promise<{ sequences: number[]; payloads: Buffer[] }> {
  const dealer = new Dealer({ receiveTimeout: 5000 });
  open.push(dealer);
  dealer.connect(publisher.replayEndpoint as string);
  await dealer.send([Buffer.alloc(0), from(start)]);
  const sequences: number[] = [];
  const payloads: Buffer[] = [];
  for (;;) {
    const [delimiter, sequence, payload] = await dealer.receive();
    expect(delimiter.length).toBe(0);
    sequences.push(sequenceOf(sequence));
    payloads.push(payload);
    if (sequenceOf(sequence) === -1) return { sequences, payloads };
  }
}

describe('a subscriber', () => {
  test('gets topic, ascending sequence numbers and what the manager did', async () => {
    const publisher = await publisherOf({ topic: 'kv' });
    const subscriber = await subscriberOf(publisher, 'kv');
    const config = defineCacheConfig(model([full()]));
    const manager = new KvCacheManager({ config, device: new HostPageDevice(), events: publisher });
    const cache = manager.createKvCache({ tokens: seq(8) });
    await cache.resume();
    cache.resize(8);
    cache.commit(seq(8));
    cache.close();
    manager.clearReusableBlocks();

    const [topic, first, payload] = await subscriber.receive();
    expect(topic.toString()).toBe('kv');
    const [timestamp, events, rank] = decode(payload, { useBigInt64: true }) as [number, Record<string, unknown>[], bigint];
    expect([timestamp, rank]).toEqual([1.5, 0]);
    expect(events).toHaveLength(1);
    expect(events[0]).toMatchObject({
      type: 'BlockStored',
      parent_block_hash: null,
      token_ids: seq(8),
      block_size: 4,
      medium: 'GPU',
      group_idx: 0,
      kv_cache_spec_kind: 'full_attention',
      locality: 'LOCAL',
    });
    expect(events[0].block_hashes).toEqual([0xc273185c78ca83b2n, 0x73463b1a93c45369n]);
    const [, second, removal] = await subscriber.receive();
    expect(sequenceOf(second)).toBe(sequenceOf(first) + 1);
    const types = (decode(removal) as [number, { type: string }[]])[1].map(({ type }) => type);
    expect(types).toEqual(['BlockRemoved', 'AllBlocksCleared']);
    await manager.close();
  });

  test('of another topic gets nothing', async () => {
    const publisher = await publisherOf({ topic: 'ours' });
    await subscriberOf(publisher, 'ours');
    const other = new Subscriber({ receiveTimeout: 200 });
    open.push(other);
    other.connect(publisher.endpoint);
    other.subscribe('theirs');
    for (let i = 0; i < 5; i++) publisher.push([CLEARED]);
    await expect(other.receive()).rejects.toThrow();
  });
});

describe('whoever missed batches', () => {
  test('gets those from a number on, then the end', async () => {
    const publisher = await publisherOf({ replayEndpoint: LOCAL });
    for (let i = 0; i < 5; i++) publisher.push([CLEARED]);
    await publisher.flushed();
    const { sequences, payloads } = await replayed(publisher, 2);
    expect(sequences).toEqual([2, 3, 4, -1]);
    expect(payloads[3].length).toBe(0);
    expect(decode(payloads[0])).toEqual([1.5, [{ type: 'AllBlocksCleared' }], 0]);
    expect((await replayed(publisher, 5)).sequences).toEqual([-1]);
  });

  test('gets the latest of them when there were more than are kept', async () => {
    const publisher = await publisherOf({ replayEndpoint: LOCAL, replayBatches: 3 });
    for (let i = 0; i < 8; i++) publisher.push([CLEARED]);
    await publisher.flushed();
    expect((await replayed(publisher, 0)).sequences).toEqual([5, 6, 7, -1]);
  });

  test('may ask with a REQ socket as long as the answer is one message', async () => {
    const publisher = await publisherOf({ replayEndpoint: LOCAL });
    const request = new Request({ receiveTimeout: 5000 });
    open.push(request);
    request.connect(publisher.replayEndpoint as string);
    await request.send(from(0));
    const [sequence, payload] = await request.receive();
    expect([sequenceOf(sequence), payload.length]).toEqual([-1, 0]);
  });

  test('is not answered when the question is no sequence number, and the next one is', async () => {
    const publisher = await publisherOf({ replayEndpoint: LOCAL });
    const dealer = new Dealer({ receiveTimeout: 200 });
    open.push(dealer);
    dealer.connect(publisher.replayEndpoint as string);
    await dealer.send([Buffer.alloc(0), Buffer.alloc(7)]);
    await dealer.send([Buffer.alloc(8)]);
    await expect(dealer.receive()).rejects.toThrow();
    expect((await replayed(publisher, 0)).sequences).toEqual([-1]);
  });
});

describe('a publisher', () => {
  test('loses what does not fit into its queue, leaves out the numbers, and goes on', async () => {
    const publisher = await publisherOf({ replayEndpoint: LOCAL, highWaterMark: 3 });
    for (let i = 0; i < 5; i++) publisher.push([CLEARED]);
    await publisher.flushed();
    publisher.push([CLEARED]);
    await publisher.flushed();
    expect([publisher.sent, publisher.lost]).toEqual([4, 2]);
    expect((await replayed(publisher, 0)).sequences).toEqual([0, 1, 2, 5, -1]);
  });

  test('loses a batch that cannot be translated', async () => {
    const specKind = () => {
      throw new Error('no such kind');
    };
    const publisher = await publisherOf({ translation: { specKind } });
    const manager = new KvCacheManager({
      config: defineCacheConfig(model([full()])),
      device: new HostPageDevice(),
      events: publisher,
    });
    const cache = manager.createKvCache();
    await cache.resume();
    cache.resize(4);
    cache.commit(seq(4));
    await publisher.flushed();
    expect([publisher.sent, publisher.lost]).toEqual([0, 1]);
    await manager.close({ force: true });
  });

  test('sends what waits before it closes, and takes nothing afterwards', async () => {
    const publisher = await publisherOf();
    publisher.push([CLEARED]);
    await publisher.close();
    publisher.push([CLEARED]);
    expect([publisher.sent, publisher.lost]).toEqual([1, 0]);
    await publisher.close();
  });

  test('that cannot have its endpoint says which and why, and leaves no socket open', async () => {
    const first = await publisherOf();
    const attempt = ZmqEventPublisher.open({ endpoint: LOCAL, replayEndpoint: first.endpoint.replace('127.0.0.1', '*') });
    await expect(attempt).rejects.toMatchObject({ code: 'zmq-endpoint' });
  });

  test.each([
    [{ highWaterMark: 0 }, 'invalid-high-water-mark'],
    [{ replayBatches: 1.5 }, 'invalid-replay-batches'],
    [{ dataParallelRank: -1 }, 'invalid-rank'],
  ])('refuses %o', async (options, code) => {
    await expect(ZmqEventPublisher.open(options)).rejects.toMatchObject({ code });
  });
});
