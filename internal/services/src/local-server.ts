import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findServer, type ServerName } from './find-server.ts';
import { ServerProcess } from './server-process.ts';
import { until } from './until.ts';

const PATIENCE_MS = 30_000;

/** A server on a port of its own of this machine, in a folder of its own, which can be ended and started again. */
export abstract class LocalServer {
  readonly port: number;
  readonly #name: ServerName;
  readonly #folder: string;
  readonly #settings: readonly string[];
  #process: ServerProcess | undefined;

  /** @param settings more of them, as on the command line */
  protected constructor(name: ServerName, port: number, folder: string, settings: readonly string[]) {
    this.port = port;
    this.#name = name;
    this.#folder = folder;
    this.#settings = settings;
  }

  /** A folder for a server, which `stop` removes. */
  protected static folderOf(name: ServerName): Promise<string> {
    return mkdtemp(join(tmpdir(), `bufferwise-${name}-`));
  }

  /** Starts one and waits until it answers. */
  protected static async started<S extends LocalServer>(server: S): Promise<S> {
    try {
      await server.restart();
    } catch (error) {
      await server.stop();
      throw error;
    }
    return server;
  }

  /** What the command line says of port and folder. */
  protected abstract argumentsFor(folder: string): readonly string[];

  /** Whether it does its work. Rejects while nobody listens. */
  protected abstract answers(): Promise<boolean>;

  /** Starts it on the same port and folder, after `kill`. */
  async restart(): Promise<void> {
    const program = findServer(this.#name);
    if (program === undefined) throw new Error(`There is no server of ${this.#name} on this machine.`);
    const server = new ServerProcess(program, [...this.argumentsFor(this.#folder), ...this.#settings], this.#folder);
    this.#process = server;
    await until(
      'the server answers',
      async () => !server.alive || (await this.answers()),
      PATIENCE_MS,
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
