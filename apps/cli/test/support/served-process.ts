import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

/** A server as a process of its own. */
export interface ServedProcess {
  /** `http://HOST:PORT`. */
  readonly url: string;
  readonly child: ChildProcess;
  /** All that stood on the standard error. */
  told(): string;
  /** Its exit code, or the signal that ended it. */
  readonly exit: Promise<number | string>;
}

/**
 * Starts `bufferwise serve` on a free port, in a process group of its own, and waits until it listens. Rejects with what it said when it ends before.
 *
 * @param started takes the child at once: whoever started it ends it, whatever happens
 * @param runner a program that becomes the server, with its arguments
 */
export async function startServe(
  command: string,
  args: readonly string[],
  { env = process.env, started, runner = [] }: { env?: NodeJS.ProcessEnv; started: ChildProcess[]; runner?: readonly string[] },
): Promise<ServedProcess> {
  const [program, ...rest] = [...runner, process.execPath, command, 'serve', ...args, '--port', '0', '--json'];
  const child = spawn(program, rest, {
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
    env,
  });
  started.push(child);
  // A test run that is ended in the middle leaves no server behind.
  const kill = () => void child.kill('SIGKILL');
  process.on('exit', kill);
  child.once('exit', () => process.off('exit', kill));
  let told = '';
  child.stderr.on('data', (bytes) => {
    told += bytes;
  });
  const exit = once(child, 'exit').then(([code, signal]) => code ?? signal);
  const line = await Promise.race([
    once(child.stdout, 'data').then(([bytes]) => String(bytes)),
    exit.then((code) => {
      throw new Error(`bufferwise serve ${args.join(' ')} ended with ${code}: ${told}`);
    }),
  ]);
  return { ...JSON.parse(line), child, exit, told: () => told };
}
