import { ConnectorError } from '../errors.ts';

/**
 * A directory for one store at a time, in all tabs and workers of the origin, by a lock of the browser: it goes with the worker that has it, however
 * that ends. So there is nothing to clean up, and nobody can be locked out by the dead.
 *
 * @param waitMs so long the lock is waited for: the browser needs a moment to end the workers of a page that was reloaded
 * @returns what gives the directory back
 * @throws {ConnectorError} `store-locked` when somebody else still has it then
 */
export function lockDirectory(directory: string, waitMs: number): Promise<() => void> {
  const { locks } = navigator;
  // Without locks the files themselves refuse to be opened twice.
  if (locks === undefined) return Promise.resolve(() => {});
  return new Promise((resolve, reject) => {
    const hold = () => new Promise<void>((release) => resolve(release));
    locks.request(`bufferwise-pages:${directory}`, { signal: AbortSignal.timeout(waitMs) }, hold).catch((error: unknown) => {
      reject((error as { name?: string }).name === 'TimeoutError' ? lockedError(directory, error) : error);
    });
  });
}

export function lockedError(directory: string, cause: unknown): ConnectorError {
  return new ConnectorError(
    'store-locked',
    `the pages in ${JSON.stringify(directory)} are those of another open store of this origin, perhaps in another tab; close that one, or take another directory`,
    { cause },
  );
}
