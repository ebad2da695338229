import type { ConnectorLayout } from '@bufferwise/adapter-kit';
import { MemoryPageStore } from '@bufferwise/adapter-kit/memory';
import type { HostPageDevice, KvCacheManager } from '@bufferwise/cache-manager';
import memoryDriver from 'unstorage/drivers/memory';

export { PageStoreConnector } from '@bufferwise/adapter-connectors';

export declare const manager: KvCacheManager;
export declare const device: HostPageDevice;
export declare const modelFingerprint: string;
export const accessKeyId = 'an id';
export const secretAccessKey = 'a secret';
export const driver = memoryDriver();
export const anyOfTheAbove = new MemoryPageStore();
export const store = new MemoryPageStore();
export const key = new Uint8Array(32).fill(7);
export declare const layout: ConnectorLayout;
export const tokens = [1, 2, 3];
export declare const response: { body: ReadableStream<Uint8Array> };
