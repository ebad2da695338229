import { type ChildProcess, spawn } from 'node:child_process';

/** What is kept of what a server says. */
const LOG_BYTES = 8192;

const running = new Set<ChildProcess>();

// A test run that is ended in the middle leaves no server behind.
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** A server as a child of this process. */
export class ServerProcess {
  readonly #child: ChildProcess;
  readonly #ended: Promise<void>;
  #log = '';

  constructor(program: string, args: readonly string[], cwd: string) {
    this.#child = spawn(program, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'] });
    running.add(this.#child);
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.on('data', (chunk) => {
        this.#log = (this.#log + String(chunk)).slice(-LOG_BYTES);
      });
    }
    this.#ended = new Promise((resolve) => {
      const end = () => {
        running.delete(this.#child);
        resolve();
      };
      this.#child.once('close', end);
      this.#child.once('error', (error) => {
        this.#log += String(error);
        end();
      });
    });
  }

  get alive(): boolean {
    return running.has(this.#child);
  }

  /** The end of what it said. */
  get log(): string {
    return this.#log;
  }

  /** Lets it do nothing any more; its sockets stay open. */
  freeze(): void {
    this.#child.kill('SIGSTOP');
  }

  thaw(): void {
    this.#child.kill('SIGCONT');
  }

  /** Ends it without a chance to save anything. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#ended;
  }
}
