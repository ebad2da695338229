import { freePorts } from './free-ports.ts';
import { LocalServer } from './local-server.ts';
import { redisCommand } from './redis-command.ts';

export interface RedisProcessOptions {
  /** More settings, as on the command line: `['--maxmemory', '8mb']`. */
  readonly settings?: readonly string[];
  /** Default: any that is free. */
  readonly port?: number;
}

/** A Redis or Valkey server. */
export class RedisProcess extends LocalServer {
  /** Starts one and waits until it answers. */
  static async start({ settings = [], port }: RedisProcessOptions = {}): Promise<RedisProcess> {
    const taken = port ?? (await freePorts(1))[0];
    return LocalServer.started(new RedisProcess('redis', taken, await LocalServer.folderOf('redis'), settings));
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  command(...words: readonly string[]): Promise<string> {
    return redisCommand(this.port, ...words);
  }

  protected argumentsFor(folder: string): readonly string[] {
    return ['--port', String(this.port), '--bind', '127.0.0.1', '--dir', folder, '--save', '', '--daemonize', 'no'];
  }

  protected async answers(): Promise<boolean> {
    return (await this.command('PING')) === 'PONG';
  }
}
