import { checkPageKey, type PageKey } from '@bufferwise/adapter-kit';

/** Whether a name that was found on a medium is one that a store could have written: others may have put things there, too. */
export function isPageKey(key: PageKey): boolean {
  try {
    checkPageKey(key);
    return true;
  } catch {
    return false;
  }
}
