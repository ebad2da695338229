import { endBy } from '../terminal/end-by.ts';
import { INTERRUPTED } from '../terminal/terminal.ts';

/**
 * Waits for Ctrl-C or SIGTERM. A second one ends the process at once.
 *
 * @param interrupted says that Ctrl-C was pressed
 * @returns the exit code of a server that has stopped in peace: 130 after Ctrl-C, 0 after SIGTERM, which is how those who look after
 *   servers stop them
 */
export function waitForStop(interrupted: AbortSignal): Promise<number> {
  return new Promise((resolve) => {
    let isStopping = false;
    process.on('SIGTERM', () => {
      if (isStopping) endBy('SIGTERM');
      isStopping = true;
      resolve(0);
    });
    const onInterrupt = () => {
      if (isStopping) endBy('SIGINT');
      isStopping = true;
      resolve(INTERRUPTED);
    };
    if (interrupted.aborted) onInterrupt();
    else interrupted.addEventListener('abort', onInterrupt, { once: true });
  });
}
