import { AdapterError } from '../errors.ts';

/** Names a page outside of the process. */
export interface PageKey {
  /**
   * 1 to 200 of `a-z`, `0-9`, `-`, `_` and `.`, the first one a letter or a digit: safe as the name of a file on every system,
   * also where upper and lower case are one.
   */
  readonly key: string;
  /**
   * Keys of one affinity belong together, such as the pages of one prefix: a store of several machines keeps them on one. Same
   * alphabet, 1 to 64 characters. It is no part of the name, but must be the same in every call that names the key.
   */
  readonly affinity?: string;
}

const KEY = /^[a-z0-9][a-z0-9._-]{0,199}$/;
const AFFINITY = /^[a-z0-9][a-z0-9._-]{0,63}$/;

/** @throws {AdapterError} `invalid-page-key` on a key or an affinity outside of the alphabet */
export function checkPageKey({ key, affinity }: PageKey): void {
  if (typeof key !== 'string' || !KEY.test(key)) {
    throw new AdapterError(
      'invalid-page-key',
      `the page key ${JSON.stringify(key)} is none that a store takes: 1 to 200 of a-z, 0-9, -, _ and ., beginning with a letter or a digit`,
    );
  }
  if (affinity !== undefined && (typeof affinity !== 'string' || !AFFINITY.test(affinity))) {
    throw new AdapterError(
      'invalid-page-key',
      `the affinity ${JSON.stringify(affinity)} of page ${key} is none that a store takes: 1 to 64 of a-z, 0-9, -, _ and ., beginning with a letter or a digit`,
    );
  }
}
