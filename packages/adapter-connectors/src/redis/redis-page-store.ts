import { createHash } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import {
  CallGate,
  type CallOptions,
  openSealedPage,
  type PageEntry,
  type PageKey,
  type PageStore,
  type PageStoreLimits,
  type PageStoreStatistics,
  type PutOutcome,
  SEAL_BYTES,
  sealPage,
} from '@bufferwise/adapter-kit';
import { Backoff, type BackoffOptions } from '../remote/backoff.ts';
import { type CallTime, inTime } from '../remote/call-time.ts';
import { InFlight } from '../remote/in-flight.ts';
import { PageCounts } from '../remote/page-counts.ts';
import { checkCounts } from '../remote/store-options-error.ts';
import { BorrowedLink } from './borrowed-link.ts';
import { OwnLink } from './own-link.ts';
import { clusterConnection, singleConnection } from './redis-connections.ts';
import { checkKeyPrefix, redisKey } from './redis-keys.ts';
import type { RedisLink } from './redis-link.ts';
import { asBytes, asCount, asSet, type RedisOutcome, redisOutcome } from './redis-reply.ts';
import type { RedisServer, RedisWords } from './redis-server.ts';

export interface RedisPageStoreOptions {
  /** Where the pages are. */
  readonly server: RedisServer;
  /** What all its keys begin with; no braces. Default `bufferwise:`. */
  readonly keyPrefix?: string;
  /** Milliseconds for which pages are kept that come without a time of their own. Default: as long as the server likes. */
  readonly defaultTtlMs?: number;
  /** Entries of one call. Default 256. */
  readonly maxBatch?: number;
  /** Bytes of one page. Default 16 MiB. */
  readonly maxPageBytes?: number;
  /** Milliseconds after which a call answers with what it has. Default 1,000. */
  readonly timeoutMs?: number;
  /** Milliseconds in which a connection must be ready. Default 2,000. */
  readonly connectTimeoutMs?: number;
  /** Commands that wait for an answer at the same time. Default 512. */
  readonly maxCommandsInFlight?: number;
  /** Bytes of pages that those move. Reads count with the largest page that was seen so far. Default 64 MiB. */
  readonly maxBytesInFlight?: number;
  /** How long a server is left alone that failed. */
  readonly backoff?: BackoffOptions;
}

/** Counts of `RedisPageStore`: why pages were missed and refused that a healthy server would have had and taken. */
export interface RedisPageStoreStatistics extends PageStoreStatistics {
  /** Commands without an answer in the time of their call. */
  readonly timeouts: number;
  /** Commands whose connection broke. */
  readonly connectionErrors: number;
  /** Commands that the server refused: out of memory, read-only, loading, no permission. */
  readonly serverErrors: number;
  /** Answers that the command cannot have. */
  readonly nonsense: number;
  /** Commands that were not sent, because the server was known to be away. */
  readonly skipped: number;
  /** Connections that were made, the first one included; 0 with a client that was passed. */
  readonly connects: number;
}

/** Bytes of a reply stay bytes. 36 is `$`, with which a string of bytes begins. */
const AS_BYTES = { 36: Buffer } as const;

/** Servers refuse times that overflow with the date added; this is for ever, too. */
const LONGEST_TTL_MS = 2 ** 50;

/** What a read counts before any page was seen. */
const FIRST_READ_BYTES = 64 * 1024;

/**
 * Removes a value, KEYS[1], that is no page: of another type, shorter than ARGV[2] or longer than ARGV[3], or with the SHA-1 in ARGV[1].
 * It is asked for with what was seen, so that a page which somebody stored meanwhile stays. Answers how many were removed.
 */
const DISCARD = `
local length = redis.pcall('STRLEN', KEYS[1])
if type(length) == 'table' or length < tonumber(ARGV[2]) or length > tonumber(ARGV[3]) then return redis.call('DEL', KEYS[1]) end
if redis.sha1hex(redis.call('GET', KEYS[1])) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`;

/**
 * Pages in Valkey or Redis, one server or a cluster, shared by all who use the same prefix.
 *
 * Every page is one string, sealed, stored by `SET … NX`: the first writer wins. A batch is one pipeline of binary commands for each node;
 * pages of one affinity are on one node. Nothing of a value is believed: at most `maxPageBytes` and the seal are read of it, and what does
 * not verify is a miss and is removed.
 *
 * A server that is down, slow, full, read-only, loading, or answers nonsense is no exception: after `timeoutMs` at the latest its pages are
 * misses and its writes `refused`, and the statistics say why. While it is known to be away no call waits at all. Only a closed store and
 * an aborted signal reject.
 *
 * There is no `list`: `SCAN` may name a key twice, and gives no bound on how many it names.
 */
export class RedisPageStore implements PageStore {
  readonly specVersion = 'v1';
  readonly name = 'Redis page store';
  readonly supports = { list: false, ttl: true, quota: false, persistent: true, shared: true } as const;
  readonly limits: PageStoreLimits;
  readonly #gate = new CallGate(this.name);
  readonly #counts = new PageCounts();
  readonly #link: RedisLink;
  readonly #flight: InFlight;
  readonly #keyPrefix: string;
  readonly #defaultTtlMs: number | undefined;
  readonly #timeoutMs: number;
  readonly #faults = { timeouts: 0, connectionErrors: 0, serverErrors: 0, nonsense: 0, skipped: 0 };
  #readBytes = FIRST_READ_BYTES;

  private constructor(options: RedisPageStoreOptions, link: RedisLink) {
    const { keyPrefix = 'bufferwise:', defaultTtlMs, maxBatch = 256, maxPageBytes = 16 << 20, timeoutMs = 1000 } = options;
    const { maxCommandsInFlight = 512, maxBytesInFlight = 64 << 20 } = options;
    this.limits = { maxBatch, maxPageBytes };
    this.#keyPrefix = keyPrefix;
    this.#defaultTtlMs = defaultTtlMs;
    this.#timeoutMs = timeoutMs;
    this.#flight = new InFlight({ maxRequests: maxCommandsInFlight, maxBytes: maxBytesInFlight });
    this.#link = link;
  }

  /**
   * Opens a store. With options for a connection it waits for the first try, `connectTimeoutMs` at the most, and is there also when that
   * failed: a server that comes later is found.
   *
   * @throws {StoreOptionsError} `store-options` on options with which it could never work
   */
  static async open(options: RedisPageStoreOptions): Promise<RedisPageStore> {
    const { server, connectTimeoutMs = 2000, keyPrefix = '' } = options;
    checkKeyPrefix(keyPrefix);
    const {
      maxBatch = 1,
      maxPageBytes = 1,
      timeoutMs = 1,
      defaultTtlMs = 1,
      maxCommandsInFlight = 1,
      maxBytesInFlight = 1,
    } = options;
    checkCounts('Redis page store', {
      maxBatch,
      maxPageBytes,
      timeoutMs,
      defaultTtlMs,
      connectTimeoutMs,
      maxCommandsInFlight,
      maxBytesInFlight,
    });
    if ('client' in server || 'clusterClient' in server) {
      return new RedisPageStore(options, new BorrowedLink(server, options.backoff));
    }
    const numRoots = 'cluster' in server ? server.cluster.rootNodes.length : 0;
    const make = () =>
      'cluster' in server
        ? clusterConnection(server.cluster, connectTimeoutMs)
        : singleConnection(server.single, connectTimeoutMs);
    // Options that make no client are told here, where somebody listens.
    make().destroy();
    const link = new OwnLink({
      make,
      // The nodes are asked about the cluster one after the other.
      connectTimeoutMs: connectTimeoutMs * (1 + numRoots),
      backoff: new Backoff(options.backoff),
      keepBroken: 'cluster' in server,
    });
    await link.firstTry;
    return new RedisPageStore(options, link);
  }

  has(keys: readonly PageKey[], options?: CallOptions): Promise<readonly boolean[]> {
    return this.#call(keys, options, (key, time) => this.#isSound(key, time));
  }

  get(keys: readonly PageKey[], options?: CallOptions): Promise<readonly (Uint8Array | null)[]> {
    return this.#call(keys, options, (key, time) => this.#read(key, time));
  }

  put(entries: readonly PageEntry[], options?: CallOptions): Promise<readonly PutOutcome[]> {
    return this.#call(entries, options, (entry, time) => this.#write(entry, time));
  }

  delete(keys: readonly PageKey[], options?: CallOptions): Promise<readonly boolean[]> {
    return this.#call(keys, options, async (key, time) => {
      const name = redisKey(this.#keyPrefix, key);
      const reply = await this.#send(time, name, 0, () => ['UNLINK', name], asCount);
      return reply.outcome === 'value' && reply.value > 0;
    });
  }

  statistics(): RedisPageStoreStatistics {
    return { ...this.#counts.statistics(), ...this.#faults, connects: this.#link.connects };
  }

  close(): Promise<void> {
    return this.#gate.close(() => this.#link.close());
  }

  /** One call for all of a batch: what is sent in one turn goes as one pipeline. */
  #call<T extends PageKey, R>(
    batch: readonly T[],
    options: CallOptions | undefined,
    one: (each: T, time: CallTime) => Promise<R>,
  ): Promise<readonly R[]> {
    return this.#gate.run(options, () =>
      inTime(this.#timeoutMs, options, (time) => {
        // Every command of the batch listens.
        setMaxListeners(0, time.signal);
        return Promise.all(batch.map((each) => one(each, time)));
      }),
    );
  }

  /** Whether there is a value that can be a page: a string of a length that pages have. */
  async #isSound(key: PageKey, time: CallTime): Promise<boolean> {
    const name = redisKey(this.#keyPrefix, key);
    const reply = await this.#send(time, name, 0, () => ['STRLEN', name], asCount);
    return reply.outcome === 'value' && reply.value >= SEAL_BYTES && reply.value <= this.#maxSealedBytes;
  }

  async #read(key: PageKey, time: CallTime): Promise<Uint8Array | null> {
    const name = redisKey(this.#keyPrefix, key);
    // One byte more than a page may have, which tells those that are too long.
    const words = () => ['GETRANGE', name, '0', String(this.#maxSealedBytes)];
    const reply = await this.#send(time, name, this.#readBytes, words, asBytes);
    if (reply.outcome === 'value' && reply.value.length > 0) {
      const sealed = reply.value;
      const page = sealed.length > this.#maxSealedBytes ? null : openSealedPage(key.key, sealed);
      if (page !== null) {
        this.#readBytes = Math.max(this.#readBytes, sealed.length);
        return this.#counts.hit(new Uint8Array(page));
      }
      await this.#discard(name, time, createHash('sha1').update(sealed).digest('hex'));
      return this.#counts.damaged();
    }
    if (reply.outcome !== 'wrong-type') return this.#counts.miss();
    await this.#discard(name, time, '');
    return this.#counts.damaged();
  }

  async #write(entry: PageEntry, time: CallTime): Promise<PutOutcome> {
    const { bytes } = entry;
    if (bytes.length > this.limits.maxPageBytes) return this.#counts.refused('too-large');
    const name = redisKey(this.#keyPrefix, entry);
    let reply = await this.#set(entry, name, time);
    if (reply.outcome === 'value' && !reply.value && !(await this.#isSound(entry, time))) {
      // What is in the way was never a page, or has gone meanwhile.
      await this.#discard(name, time, '');
      reply = await this.#set(entry, name, time);
    }
    if (reply.outcome !== 'value') return this.#counts.refused('full');
    return reply.value ? this.#counts.stored(bytes) : { status: 'exists' };
  }

  #set({ key, bytes, ttlMs = this.#defaultTtlMs }: PageEntry, name: string, time: CallTime): Promise<RedisOutcome<boolean>> {
    const expiry = ttlMs === undefined ? [] : ['PX', String(Math.min(Math.ceil(ttlMs), LONGEST_TTL_MS))];
    const words = () => ['SET', name, asBuffer(sealPage(key, bytes)), 'NX', ...expiry];
    return this.#send(time, name, bytes.length + SEAL_BYTES, words, asSet);
  }

  /** Removes what is no page, so that a page can be stored there. */
  async #discard(name: string, time: CallTime, sha1: string): Promise<void> {
    const words = () => ['EVAL', DISCARD, '1', name, sha1, String(SEAL_BYTES), String(this.#maxSealedBytes)];
    const reply = await this.#send(time, name, 0, words, asCount);
    // The server has something else than it sent: not the page is damaged, but the way.
    if (sha1 !== '' && reply.outcome === 'value' && reply.value === 0) this.#link.broken();
  }

  get #maxSealedBytes(): number {
    return this.limits.maxPageBytes + SEAL_BYTES;
  }

  /**
   * Sends a command once there is room for it.
   *
   * @param bytes of pages that it moves
   * @param words made when it is sent, so that no copies of pages wait
   */
  async #send<T>(
    time: CallTime,
    name: string,
    bytes: number,
    words: () => RedisWords,
    accept: (reply: unknown) => T | undefined,
  ): Promise<RedisOutcome<T>> {
    if (!this.#link.usable) {
      this.#faults.skipped++;
      return { outcome: 'lost' };
    }
    if (!(await this.#flight.enter(bytes, time.signal))) {
      if (time.expired) this.#faults.timeouts++;
      return { outcome: 'late' };
    }
    const settled = await time.settle(this.#transmit(name, bytes, words, time.signal));
    // Whoever gave up says nothing of the server.
    if (settled.status !== 'done' && time.signal.aborted && !time.expired) return { outcome: 'late' };
    const outcome = redisOutcome(settled, accept);
    this.#account(outcome.outcome);
    return outcome;
  }

  async #transmit(name: string, bytes: number, words: () => RedisWords, signal: AbortSignal): Promise<unknown> {
    try {
      signal.throwIfAborted();
      return await this.#link.send(name, words(), { typeMapping: AS_BYTES, abortSignal: signal });
    } finally {
      this.#flight.leave(bytes);
    }
  }

  #account(outcome: RedisOutcome<unknown>['outcome']): void {
    if (outcome === 'value' || outcome === 'wrong-type') {
      this.#link.healthy();
    } else if (outcome === 'refused') {
      this.#faults.serverErrors++;
    } else {
      this.#faults[({ late: 'timeouts', lost: 'connectionErrors', nonsense: 'nonsense' } as const)[outcome]]++;
      this.#link.broken();
    }
  }
}

const asBuffer = (bytes: Uint8Array) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
