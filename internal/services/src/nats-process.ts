import { mkdtemp, rm } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findServer } from './find-server.ts';
import { freePorts } from './free-ports.ts';
import { ServerProcess } from './server-process.ts';
import { until } from './until.ts';

export interface NatsProcessOptions {
  /** More settings, as on the command line: `['--user', 'a', '--pass', 'b']`. */
  readonly settings?: readonly string[];
}

/** A NATS server on a port of its own. It keeps nothing. */
export class NatsProcess {
  readonly port: number;
  readonly #folder: string;
  readonly #settings: readonly string[];
  #process: ServerProcess | undefined;

  private constructor(port: number, folder: string, settings: readonly string[]) {
    this.port = port;
    this.#folder = folder;
    this.#settings = settings;
  }

  /** Starts one and waits until it answers. */
  static async start({ settings = [] }: NatsProcessOptions = {}): Promise<NatsProcess> {
    const [port] = await freePorts(1);
    const nats = new NatsProcess(port, await mkdtemp(join(tmpdir(), 'bufferwise-nats-')), settings);
    try {
      await nats.restart();
    } catch (error) {
      await nats.stop();
      throw error;
    }
    return nats;
  }

  get url(): string {
    return `nats://127.0.0.1:${this.port}`;
  }

  /** Starts it on the same port, after `kill`. */
  async restart(): Promise<void> {
    const program = findServer('nats');
    if (program === undefined) throw new Error('There is no nats-server on this machine.');
    const fixed = ['--addr', '127.0.0.1', '--port', String(this.port)];
    const server = new ServerProcess(program, [...fixed, ...this.#settings], this.#folder);
    this.#process = server;
    await until(
      'the server answers',
      async () => !server.alive || (await greets(this.port)),
      30_000,
      () => `\n${server.log}`,
    );
    if (!server.alive) throw new Error(`The server ended at once:\n${server.log}`);
  }

  /** Lets it do nothing any more; its connections stay open. */
  freeze(): void {
    this.#process?.freeze();
  }

  thaw(): void {
    this.#process?.thaw();
  }

  async kill(): Promise<void> {
    await this.#process?.kill();
  }

  /** Ends it and removes its folder. */
  async stop(): Promise<void> {
    await this.kill();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** Whether a server of NATS says who it is, as it does to everybody who connects. */
function greets(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ port, host: '127.0.0.1' });
    socket.setTimeout(5_000, () => socket.destroy(new Error(`port ${port} says nothing`)));
    socket.once('error', reject);
    socket.once('data', (bytes) => {
      socket.destroy();
      resolve(bytes.toString('latin1').startsWith('INFO '));
    });
  });
}
