import { createConnection } from 'node:net';
import { freePorts } from './free-ports.ts';
import { LocalServer } from './local-server.ts';

export interface NatsProcessOptions {
  /** Address of this machine that it listens on. Default 127.0.0.1. */
  readonly host?: string;
  /** More settings, as on the command line: `['--user', 'a', '--pass', 'b']`. */
  readonly settings?: readonly string[];
}

const LOCALHOST = '127.0.0.1';

/** A NATS server. It keeps nothing. */
export class NatsProcess extends LocalServer {
  #host = LOCALHOST;

  /** Starts one and waits until it answers. */
  static async start({ host = LOCALHOST, settings = [] }: NatsProcessOptions = {}): Promise<NatsProcess> {
    const [port] = await freePorts(1);
    const nats = new NatsProcess('nats', port, await LocalServer.folderOf('nats'), settings);
    nats.#host = host;
    return LocalServer.started(nats);
  }

  get url(): string {
    return `nats://${this.#host}:${this.port}`;
  }

  protected argumentsFor(): readonly string[] {
    return ['--addr', this.#host, '--port', String(this.port)];
  }

  protected answers(): Promise<boolean> {
    return greets(this.#host, this.port);
  }
}

/** Whether a server of NATS says who it is, as it does to everybody who connects. */
function greets(host: string, port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ port, host });
    socket.setTimeout(5_000, () => socket.destroy(new Error(`port ${port} says nothing`)));
    socket.once('error', reject);
    socket.once('data', (bytes) => {
      socket.destroy();
      resolve(bytes.toString('latin1').startsWith('INFO '));
    });
  });
}
