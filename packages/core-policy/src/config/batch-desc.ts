import type { FaultLog } from './fault-log.ts';
import { join, orDefault, readFields, readList, readWhole, refuseUnknownKeys } from './read-fields.ts';

/** The lengths of one request in a batch, in tokens: 0 <= historyLength <= capacity. */
export interface KvCacheDesc {
  capacity: number;
  historyLength: number;
}

/** A batch of requests, by their lengths: what pools are sized for. */
export interface BatchDesc {
  kvCaches: readonly KvCacheDesc[];
  /** Tokens at the start that all requests share, >= 0. Only its whole blocks are shared. Default 0. */
  systemPromptLength?: number;
}

/** A batch as `defineCacheConfig` gives it back, with nothing left to default. */
export interface ResolvedBatchDesc {
  readonly kvCaches: readonly Readonly<KvCacheDesc>[];
  readonly systemPromptLength: number;
}

/** Checks one batch. */
export function readBatchDesc(faults: FaultLog, path: string, value: unknown): ResolvedBatchDesc | undefined {
  const fields = readFields(faults, path, value);
  if (fields === undefined) return undefined;
  refuseUnknownKeys(faults, path, fields, ['kvCaches', 'systemPromptLength'], 'a batch');
  const kvCaches = readList(faults, join(path, 'kvCaches'), fields.kvCaches, (element, elementPath) =>
    readKvCacheDesc(faults, elementPath, element),
  );
  const systemPromptLength = readWhole(faults, join(path, 'systemPromptLength'), orDefault(fields.systemPromptLength, 0), {
    min: 0,
    unit: 'tokens',
  });
  return kvCaches === undefined || systemPromptLength === undefined ? undefined : Object.freeze({ kvCaches, systemPromptLength });
}

function readKvCacheDesc(faults: FaultLog, path: string, value: unknown): Readonly<KvCacheDesc> | undefined {
  const fields = readFields(faults, path, value);
  if (fields === undefined) return undefined;
  refuseUnknownKeys(faults, path, fields, ['capacity', 'historyLength'], 'a request of a batch');
  const capacity = readWhole(faults, join(path, 'capacity'), fields.capacity, { min: 0, unit: 'tokens' });
  const historyLength = readWhole(faults, join(path, 'historyLength'), fields.historyLength, { min: 0, unit: 'tokens' });
  if (capacity === undefined || historyLength === undefined) return undefined;
  if (historyLength > capacity) {
    const message = `must be at most the capacity, ${capacity}, got ${historyLength}.`;
    return faults.note('config-history-above-capacity', join(path, 'historyLength'), historyLength, message);
  }
  return Object.freeze({ capacity, historyLength });
}
