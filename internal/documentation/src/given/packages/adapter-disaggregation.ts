import type { PageConnection, PageListener, StreamId } from '@bufferwise/adapter-kit';
import type { HostPageDevice, KvCache, KvCacheManager as Manager } from '@bufferwise/cache-manager';
import type { CacheConfig } from '@bufferwise/core-policy';

export { TransferReceiver, TransferSender, transferLayout } from '@bufferwise/adapter-disaggregation';
export { KvCacheManager } from '@bufferwise/cache-manager';

export declare const manager: Manager;
export declare const device: HostPageDevice;
export declare const config: CacheConfig;
export declare const modelFingerprint: string;
export declare const connection: PageConnection;
export declare const listener: PageListener;
export declare const cache: KvCache;
export declare const tokens: readonly number[];
export declare function promptOf(request: string): readonly number[];
export declare function goOn(cache: KvCache): void;
export declare function take(stream: StreamId, firstPage: number, bytes: Uint8Array): void;
export declare const user: string;
export declare const pass: string;
export declare const freePages: number;
export declare const active: number;
export declare const waiting: number;
export declare const body: string;
export declare function answerTo(body: unknown): Promise<string>;
export declare const signal: AbortSignal;
