import type { ConnectionOptions, NatsConnection } from '@nats-io/nats-core';
import { ControlError } from './control-error.ts';

/**
 * A connection to NATS that is good for the control plane: it comes back by itself however long the server is away, and notices within
 * seconds when it is. Takes what the library takes, `servers`, `user` and `pass`, `token`, `authenticator`, `tls`, …, and what is given wins.
 * `ws://` and `wss://` servers also go from a browser.
 *
 * Needs `@nats-io/transport-node` in Node, `@nats-io/nats-core` for WebSockets. Rejects with {ControlError} `control-lost` when nobody answers
 * or what is given opens nothing. The caller closes it.
 */
export async function connectNats(options: ConnectionOptions = {}): Promise<NatsConnection> {
  const servers = [options.servers ?? []].flat();
  const all: ConnectionOptions = {
    name: 'bufferwise',
    maxReconnectAttempts: -1,
    reconnectTimeWait: 250,
    reconnectJitter: 250,
    pingInterval: 5_000,
    maxPingOut: 2,
    ...options,
  };
  try {
    if (servers.some((server) => /^wss?:/.test(server))) {
      const { wsconnect } = await import('@nats-io/nats-core');
      return await wsconnect(all);
    }
    const { connect } = await import('@nats-io/transport-node');
    return await connect(all);
  } catch (cause) {
    const where = servers.join(', ') || 'this machine';
    throw new ControlError(
      'control-lost',
      `no connection to NATS on ${where} (${(cause as Error).message}); start it, or see the cause`,
      {
        cause,
      },
    );
  }
}
