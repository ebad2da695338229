import { createConnection } from 'node:net';
import { freePorts } from './free-ports.ts';
import { LocalServer } from './local-server.ts';

export interface NatsProcessOptions {
  /** More settings, as on the command line: `['--user', 'a', '--pass', 'b']`. */
  readonly settings?: readonly string[];
}

/** A NATS server. It keeps nothing. */
export class NatsProcess extends LocalServer {
  /** Starts one and waits until it answers. */
  static async start({ settings = [] }: NatsProcessOptions = {}): Promise<NatsProcess> {
    const [port] = await freePorts(1);
    return LocalServer.started(new NatsProcess('nats', port, await LocalServer.folderOf('nats'), settings));
  }

  get url(): string {
    return `nats://127.0.0.1:${this.port}`;
  }

  protected argumentsFor(): readonly string[] {
    return ['--addr', '127.0.0.1', '--port', String(this.port)];
  }

  protected answers(): Promise<boolean> {
    return greets(this.port);
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
