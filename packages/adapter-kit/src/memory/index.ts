export { HashConsumer, type HashWork } from './hash-consumer.ts';
export { MemoryConnector, type MemoryConnectorOptions } from './memory-connector.ts';
export { MemoryPageStore, type MemoryPageStoreOptions, MemoryPages, type StoredPage } from './memory-page-store.ts';
export { MemoryNetwork, MemoryTransport, memoryTransportPair } from './memory-transport.ts';
