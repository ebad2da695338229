import {
  CallGate,
  type CallOptions,
  type ListOptions,
  openSealedPage,
  type PageEntry,
  type PageKey,
  type PageList,
  type PageStore,
  type PageStoreLimits,
  type PageStoreStatistics,
  type PutOutcome,
  SEAL_BYTES,
  sealPage,
} from '@bufferwise/adapter-kit';
import { AwsClient } from 'aws4fetch';
import { isPageKey } from '../is-page-key.ts';
import type { BackoffOptions } from '../remote/backoff.ts';
import { type CallTime, inTime } from '../remote/call-time.ts';
import { InFlight } from '../remote/in-flight.ts';
import { PageCounts } from '../remote/page-counts.ts';
import { Rest } from '../remote/rest.ts';
import { checkCounts, StoreOptionsError } from '../remote/store-options-error.ts';
import { StoreUnavailableError } from '../remote/store-unavailable-error.ts';
import { boundedBody } from './bounded-body.ts';
import { readS3List } from './s3-list.ts';

export interface S3PageStoreOptions {
  /** The bucket, as a URL: `https://pages.s3.eu-central-1.amazonaws.com` or `http://127.0.0.1:9000/pages`. */
  readonly bucketUrl: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
  /** What the names of all its objects begin with: letters, digits, `-`, `_`, `.` and `/`. Default `bufferwise/`. */
  readonly keyPrefix?: string;
  /** Entries of one call, 1,000 at most. Default 64. */
  readonly maxBatch?: number;
  /** Bytes of one page. Default 64 MiB. */
  readonly maxPageBytes?: number;
  /** Milliseconds after which a call answers with what it has. Default 5,000. */
  readonly timeoutMs?: number;
  /** Requests under way at the same time. Default 32. */
  readonly maxRequestsInFlight?: number;
  /** Bytes of pages that those move. Reads count with the largest page that was seen so far. Default 128 MiB. */
  readonly maxBytesInFlight?: number;
  /** How long a server is left alone that failed. */
  readonly backoff?: BackoffOptions;
  /** Default: the platform's own. */
  readonly fetch?: typeof fetch;
}

/** Counts of `S3PageStore`: why pages were missed and refused that a healthy server would have had and taken. */
export interface S3PageStoreStatistics extends PageStoreStatistics {
  /** Requests that were not done in the time of their call. */
  readonly timeouts: number;
  /** Requests that got no answer, or half of one. */
  readonly connectionErrors: number;
  /** Requests that were answered with an error. */
  readonly serverErrors: number;
  /** Requests that were not sent, because the server was known to be away. */
  readonly skipped: number;
}

interface S3Request {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'DELETE';
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: () => Uint8Array;
}

/** What a read counts before any page was seen. */
const FIRST_READ_BYTES = 256 * 1024;
const MAX_LIST_BYTES = 4 << 20;
/** Tries of a write that meets another one of the same page. */
const MAX_CONFLICTS = 3;

const done = (status: number) => status >= 200 && status < 300;

/**
 * Pages as objects of a bucket of S3, or of a server that speaks its protocol: requests of `fetch` with signatures of version 4.
 *
 * A page is one sealed object, written with `If-None-Match: *`: the first writer wins. A server that does not know conditional writes
 * overwrites, which does no harm as long as equal keys mean equal bytes. Objects carry no affinity and no time of their own; let a
 * lifecycle rule of the bucket remove old ones.
 *
 * A server that is down, slow, or answers with errors is no exception: after `timeoutMs` at the latest its pages are misses and its writes
 * `refused`, and the statistics say why. While it is known to be away no call waits at all. A closed store and an aborted signal reject,
 * and `list` does when the bucket cannot be listed.
 */
export class S3PageStore implements PageStore {
  readonly specVersion = 'v1';
  readonly name = 'S3 page store';
  readonly supports = { list: true, ttl: false, quota: false, persistent: true, shared: true } as const;
  readonly limits: PageStoreLimits;
  readonly #gate = new CallGate(this.name);
  readonly #counts = new PageCounts();
  readonly #faults = { timeouts: 0, connectionErrors: 0, serverErrors: 0, skipped: 0 };
  readonly #client: AwsClient;
  readonly #bucketUrl: string;
  readonly #keyPrefix: string;
  readonly #timeoutMs: number;
  readonly #flight: InFlight;
  readonly #rest: Rest;
  readonly #fetch: typeof fetch;
  #readBytes = FIRST_READ_BYTES;

  /** @throws {StoreOptionsError} `store-options` on options with which it could never work */
  constructor(options: S3PageStoreOptions) {
    const { bucketUrl, region, accessKeyId, secretAccessKey, sessionToken, keyPrefix = 'bufferwise/' } = options;
    const {
      maxBatch = 64,
      maxPageBytes = 64 << 20,
      timeoutMs = 5000,
      maxRequestsInFlight = 32,
      maxBytesInFlight = 128 << 20,
    } = options;
    checkCounts(this.name, { maxBatch, maxPageBytes, timeoutMs, maxRequestsInFlight, maxBytesInFlight });
    if (maxBatch > 1000)
      throw new StoreOptionsError(`${this.name}: maxBatch is ${maxBatch}; a list has 1,000 objects at most, so pass no more`);
    if (!/^[\w./-]*$/.test(keyPrefix)) {
      throw new StoreOptionsError(`${this.name}: keyPrefix is ${JSON.stringify(keyPrefix)}; use letters, digits, -, _, . and /`);
    }
    if (!/^https?:$/.test(urlOf(bucketUrl)?.protocol ?? '')) {
      throw new StoreOptionsError(
        `${this.name}: bucketUrl is ${JSON.stringify(bucketUrl)}; pass an http or https URL of a bucket`,
      );
    }
    this.limits = { maxBatch, maxPageBytes };
    this.#client = new AwsClient({ accessKeyId, secretAccessKey, sessionToken, service: 's3', region, retries: 0 });
    this.#bucketUrl = bucketUrl.replace(/\/+$/, '');
    this.#keyPrefix = keyPrefix;
    this.#timeoutMs = timeoutMs;
    this.#flight = new InFlight({ maxRequests: maxRequestsInFlight, maxBytes: maxBytesInFlight });
    this.#rest = new Rest(options.backoff);
    this.#fetch = options.fetch ?? ((request, init) => fetch(request, init));
  }

  has(keys: readonly PageKey[], options?: CallOptions): Promise<readonly boolean[]> {
    return this.#call(keys, options, async (key, time) => {
      const length = await this.#lengthOf(key, time);
      return length !== null && length >= SEAL_BYTES && length <= this.#maxSealedBytes;
    });
  }

  get(keys: readonly PageKey[], options?: CallOptions): Promise<readonly (Uint8Array | null)[]> {
    return this.#call(keys, options, (key, time) => this.#read(key, time));
  }

  put(entries: readonly PageEntry[], options?: CallOptions): Promise<readonly PutOutcome[]> {
    return this.#call(entries, options, (entry, time) => this.#write(entry, time));
  }

  /** Looks first, because a server does not say what a removal removed. */
  delete(keys: readonly PageKey[], options?: CallOptions): Promise<readonly boolean[]> {
    return this.#call(keys, options, async (key, time) => {
      if ((await this.#lengthOf(key, time)) === null) return false;
      return this.#remove(key, time);
    });
  }

  /** @throws {StoreUnavailableError} `store-unavailable` when the bucket cannot be listed */
  list(options?: ListOptions): Promise<PageList> {
    return this.#gate.run(options, () =>
      inTime(this.#timeoutMs, options, async (time) => {
        const query = new URLSearchParams({
          'list-type': '2',
          prefix: this.#keyPrefix,
          'max-keys': String(this.limits.maxBatch),
        });
        if (options?.cursor !== undefined) query.set('continuation-token', options.cursor);
        const request: S3Request = { method: 'GET', url: `${this.#bucketUrl}?${query}` };
        const answer = await this.#exchange(request, 0, time, async (response, signal) => {
          const body = await boundedBody(response, MAX_LIST_BYTES, signal);
          return { status: response.status, list: body && readS3List(new TextDecoder().decode(body)) };
        });
        options?.signal?.throwIfAborted();
        if (!answer?.list || !done(answer.status)) {
          throw new StoreUnavailableError(
            `${this.name}: ${this.#bucketUrl} gave no list (${answer === null ? 'no answer' : `status ${answer.status}`}); try again later, and see that the key may list the bucket`,
          );
        }
        const keys = answer.list.keys.map((name) => ({ key: name.slice(this.#keyPrefix.length) })).filter(isPageKey);
        return { keys, cursor: answer.list.token };
      }),
    );
  }

  statistics(): S3PageStoreStatistics {
    return { ...this.#counts.statistics(), ...this.#faults };
  }

  close(): Promise<void> {
    return this.#gate.close();
  }

  #call<T extends PageKey, R>(
    batch: readonly T[],
    options: CallOptions | undefined,
    one: (each: T, time: CallTime) => Promise<R>,
  ): Promise<readonly R[]> {
    return this.#gate.run(options, () =>
      inTime(this.#timeoutMs, options, (time) => Promise.all(batch.map((each) => one(each, time)))),
    );
  }

  /** Bytes of the object; null where there is none, or no answer. */
  async #lengthOf(key: PageKey, time: CallTime): Promise<number | null> {
    const head = await this.#exchange({ method: 'HEAD', url: this.#urlOf(key) }, 0, time, async ({ status, headers }) => ({
      status,
      length: Number(headers.get('content-length') ?? Number.NaN),
    }));
    return head !== null && done(head.status) ? head.length : null;
  }

  async #read(key: PageKey, time: CallTime): Promise<Uint8Array | null> {
    const request: S3Request = { method: 'GET', url: this.#urlOf(key) };
    // What is damaged is read again: when the way was bad, not the object, it stays.
    for (let tries = 0; tries < 2; tries++) {
      const answer = await this.#exchange(request, this.#readBytes, time, async (response, signal) => ({
        status: response.status,
        sealed: await boundedBody(response, this.#maxSealedBytes, signal),
      }));
      if (answer === null || !done(answer.status)) return this.#counts.miss();
      const page = answer.sealed && openSealedPage(key.key, answer.sealed);
      if (page !== null) {
        this.#readBytes = Math.max(this.#readBytes, page.length + SEAL_BYTES);
        return this.#counts.hit(page.slice());
      }
    }
    await this.#remove(key, time);
    return this.#counts.damaged();
  }

  async #write(entry: PageEntry, time: CallTime): Promise<PutOutcome> {
    const { key, bytes } = entry;
    if (bytes.length > this.limits.maxPageBytes) return this.#counts.refused('too-large');
    const request: S3Request = {
      method: 'PUT',
      url: this.#urlOf(entry),
      headers: { 'content-type': 'application/octet-stream', 'if-none-match': '*' },
      body: () => sealPage(key, bytes),
    };
    for (let tries = 0; tries < MAX_CONFLICTS; tries++) {
      const status = await this.#exchange(request, bytes.length + SEAL_BYTES, time, statusOf);
      if (status === null) break;
      if (done(status)) return this.#counts.stored(bytes);
      if (status === 412) return { status: 'exists' };
      if (status === 413) return this.#counts.refused('too-large');
      if (status !== 409) break;
    }
    return this.#counts.refused('full');
  }

  async #remove(key: PageKey, time: CallTime): Promise<boolean> {
    const status = await this.#exchange({ method: 'DELETE', url: this.#urlOf(key) }, 0, time, statusOf);
    return status !== null && done(status);
  }

  #urlOf({ key }: PageKey): string {
    return `${this.#bucketUrl}/${this.#keyPrefix}${key}`;
  }

  get #maxSealedBytes(): number {
    return this.limits.maxPageBytes + SEAL_BYTES;
  }

  /**
   * One request, once there is room for it, and what `read` makes of the response.
   *
   * @param bytes of pages that it moves
   * @returns null without an answer, which has been counted
   */
  async #exchange<T>(
    request: S3Request,
    bytes: number,
    time: CallTime,
    read: (response: Response, signal: AbortSignal) => Promise<T>,
  ): Promise<T | null> {
    if (!this.#rest.over) {
      this.#faults.skipped++;
      return null;
    }
    // One of its own for each request, because signals warn of many listeners.
    const signal = AbortSignal.any([time.signal]);
    if (!(await this.#flight.enter(bytes, signal))) {
      if (time.expired) this.#faults.timeouts++;
      return null;
    }
    const settled = await time.settle(this.#transmit(request, bytes, read, signal));
    if (settled.status === 'done') return settled.value;
    // Whoever gave up says nothing of the server.
    if (time.signal.aborted && !time.expired) return null;
    this.#faults[time.expired ? 'timeouts' : 'connectionErrors']++;
    this.#rest.failed();
    return null;
  }

  async #transmit<T>(
    { method, url, headers = {}, body }: S3Request,
    bytes: number,
    read: (response: Response, signal: AbortSignal) => Promise<T>,
    signal: AbortSignal,
  ): Promise<T> {
    try {
      signal.throwIfAborted();
      const payload = body?.() as Uint8Array<ArrayBuffer> | undefined;
      const sha256 = await crypto.subtle.digest('SHA-256', payload ?? new Uint8Array(0));
      const signed = await this.#client.sign(url, {
        method,
        headers: { ...headers, 'x-amz-content-sha256': hexOf(sha256) },
        body: payload,
      });
      const response = await this.#fetch(signed, { signal, redirect: 'manual' });
      this.#judge(response.status);
      return await read(response, signal);
    } finally {
      this.#flight.leave(bytes);
    }
  }

  #judge(status: number): void {
    if (done(status) || status === 404 || status === 409 || status === 412) {
      this.#rest.succeeded();
      return;
    }
    this.#faults.serverErrors++;
    if (status === 429 || status >= 500) this.#rest.failed();
  }
}

async function statusOf(response: Response): Promise<number> {
  await response.body?.cancel();
  return response.status;
}

function urlOf(url: string): URL | undefined {
  return URL.canParse(url) ? new URL(url) : undefined;
}

const hexOf = (bytes: ArrayBuffer) => Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, '0')).join('');
