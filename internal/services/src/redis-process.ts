import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findServer } from './find-server.ts';
import { freePorts } from './free-ports.ts';
import { redisCommand } from './redis-command.ts';
import { ServerProcess } from './server-process.ts';
import { until } from './until.ts';

export interface RedisProcessOptions {
  /** More settings, as on the command line: `['--maxmemory', '8mb']`. */
  readonly settings?: readonly string[];
  /** Default: any that is free. */
  readonly port?: number;
}

/** A Redis or Valkey server on a port of its own, with an empty folder. */
export class RedisProcess {
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
  static async start({ settings = [], port }: RedisProcessOptions = {}): Promise<RedisProcess> {
    const redis = new RedisProcess(port ?? (await freePorts(1))[0], await mkdtemp(join(tmpdir(), 'bufferwise-redis-')), settings);
    try {
      await redis.restart();
    } catch (error) {
      await redis.stop();
      throw error;
    }
    return redis;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  command(...words: readonly string[]): Promise<string> {
    return redisCommand(this.port, ...words);
  }

  /** Starts it on the same port and folder, after `kill`. */
  async restart(): Promise<void> {
    const program = findServer('redis');
    if (program === undefined) throw new Error('There is no redis-server on this machine.');
    const fixed = ['--port', String(this.port), '--bind', '127.0.0.1', '--dir', this.#folder, '--save', '', '--daemonize', 'no'];
    const server = new ServerProcess(program, [...fixed, ...this.#settings], this.#folder);
    this.#process = server;
    await until(
      'the server answers',
      async () => {
        if (!server.alive) return true;
        return (await this.command('PING')) === 'PONG';
      },
      30_000,
      () => `\n${server.log}`,
    );
    if (!server.alive) throw new Error(`The server ended at once:\n${server.log}`);
  }

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
