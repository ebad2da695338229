import { StateError } from '@bufferwise/core-policy';

/** A key that is safe as the name of a file. Throws {StateError} `invalid-key` on any other. */
export function checkKey(key: string): string {
  if (/^[a-z0-9-]{1,100}$/.test(key)) return key;
  throw new StateError(
    'invalid-key',
    `the key ${JSON.stringify(key)} is none that a tier store takes: up to 100 of a-z, 0-9 and -`,
  );
}
