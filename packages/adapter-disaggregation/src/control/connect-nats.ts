import type { ConnectionOptions, NatsConnection } from '@nats-io/nats-core';
import { ControlError } from './control-error.ts';

/**
 * A connection to NATS that is good for the control plane: it comes back by itself however long the server is away, and notices within
 * seconds when it is. Rejects with {ControlError} `control-lost` when nobody answers, or what is given opens nothing. The caller closes it.
 *
 * @param connect of the library: `connect` of `@nats-io/transport-node` in Node, `wsconnect` of `@nats-io/nats-core` in a browser
 * @param options as the library has them, `servers`, `user` and `pass`, `token`, `authenticator`, `tls`, …: what is given wins
 */
export async function connectNats<Options extends Omit<ConnectionOptions, 'tls'>>(
  connect: (options: Options) => Promise<NatsConnection>,
  options: Options,
): Promise<NatsConnection> {
  try {
    return await connect({
      name: 'bufferwise',
      maxReconnectAttempts: -1,
      reconnectTimeWait: 250,
      reconnectJitter: 250,
      pingInterval: 5_000,
      maxPingOut: 2,
      ...options,
    });
  } catch (cause) {
    const where = [options.servers ?? 'this machine'].flat().join(', ');
    throw new ControlError(
      'control-lost',
      `no connection to NATS on ${where} (${(cause as Error).message}); start it, or see the cause`,
      {
        cause,
      },
    );
  }
}
