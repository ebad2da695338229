import { blockKey, keyToHex, rootKey } from '@bufferwise/cache-manager/outside';
import type { EngineModel } from '../model/engine-model.ts';

const utf8 = new TextEncoder();

/**
 * A name for the numbers that a model puts into pages: SHA-256, chained over its description and all of its tensors with their names and
 * shapes, as 64 hexadecimal digits. Models of equal names write equal pages. Reads all weights once.
 */
export function modelFingerprint({ description, tensors }: EngineModel): string {
  let key = blockKey(rootKey(), utf8.encode(JSON.stringify(description)));
  for (const [name, tensor] of [...tensors].sort(([a], [b]) => (a < b ? -1 : 1))) {
    key = blockKey(key, utf8.encode(JSON.stringify([name, tensor.shape, tensor.type])));
    key = blockKey(key, tensor.bytes);
  }
  return keyToHex(key);
}
