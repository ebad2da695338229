import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

/** Signals that end a command, or that it may answer. */
const ENDING = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;

/**
 * Starts this command again with more variables, and ends as that run ends.
 *
 * That run has a session of its own, so that Ctrl-C reaches it once, through here, as a signal does that is meant for this process alone.
 */
export async function restartWith(environment: Readonly<Record<string, string>>): Promise<never> {
  const child = spawn(process.execPath, [...process.execArgv, ...process.argv.slice(1)], {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    detached: true,
    env: { ...process.env, ...environment },
  });
  passSignalsTo(child);
  const [status, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
  if (signal !== null) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  }
  process.exit(status ?? 1);
}

function passSignalsTo(child: ChildProcess): void {
  for (const signal of ENDING) {
    process.removeAllListeners(signal);
    process.on(signal, () => child.kill(signal));
  }
  process.on('SIGTSTP', () => {
    child.kill('SIGSTOP');
    process.kill(process.pid, 'SIGSTOP');
  });
  process.on('SIGCONT', () => child.kill('SIGCONT'));
}

/** Ends this run in order when the process is gone that started it, even if that could not say so. */
export function endWithParent(): void {
  process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
  process.channel?.unref();
}
