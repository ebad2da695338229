import type { ChildProcess } from 'node:child_process';
import { NatsProcess } from '@bufferwise-internal/services';
import { gpuEnvironment } from '@bufferwise-internal/webgpu-node';
import { type ServedProcess, startServe } from './served-process.ts';
import { sourceCommand } from './source-command.ts';

const SECRET = 'a secret of these tests alone';
const USER = { user: 'worker', pass: 'p@ss/word' };
/** What must never be said by anybody. */
export const SECRETS = /p@ss|p%40ss|a secret of/;

let prepared: Promise<{ command: string; environment: NodeJS.ProcessEnv }> | undefined;
function prepare() {
  prepared ??= Promise.all([sourceCommand(), gpuEnvironment()]).then(([command, gpu]) => ({
    command,
    environment: { ...process.env, ...gpu },
  }));
  return prepared;
}

export interface ServedClusterOptions {
  /** Path of the model of all of them. */
  readonly model: string;
  /** Address of this machine at which workers find NATS. Default 127.0.0.1. */
  readonly host?: string;
}

/** Servers as processes of their own, which find each other over a NATS that nobody else has. */
export class ServedCluster {
  readonly nats: NatsProcess;
  readonly #model: string;
  readonly #started: ChildProcess[] = [];

  private constructor(nats: NatsProcess, model: string) {
    this.nats = nats;
    this.#model = model;
  }

  static async start({ model, host }: ServedClusterOptions): Promise<ServedCluster> {
    return new ServedCluster(await NatsProcess.start({ host, settings: ['--user', USER.user, '--pass', USER.pass] }), model);
  }

  /** @param runner what starts the process, where it is not to be started as it is: `['ip', 'netns', 'exec', …]` */
  async serve(args: readonly string[], runner: readonly string[] = []): Promise<ServedProcess> {
    const { command, environment } = await prepare();
    const url = new URL(this.nats.url);
    url.username = USER.user;
    url.password = USER.pass;
    const env = { ...environment, BUFFERWISE_NATS: url.href, BUFFERWISE_CLUSTER_KEY: SECRET };
    return startServe(command, [this.#model, ...args], { env, started: this.#started, runner });
  }

  prefill(...args: readonly string[]): Promise<ServedProcess> {
    return this.serve(['--role', 'prefill', ...args]);
  }

  /** One that has all but the shortest prompts read by others, and waits for them. */
  decode(...args: readonly string[]): Promise<ServedProcess> {
    return this.serve(['--role', 'decode', '--prefill-from', '16', '--prefill-timeout', '5m', ...args]);
  }

  /** Kills all of it. */
  async stop(): Promise<void> {
    for (const child of this.#started.splice(0)) child.kill('SIGKILL');
    await this.nats.stop();
  }
}
