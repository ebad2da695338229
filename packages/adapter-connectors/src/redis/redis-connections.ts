import { createClient, createCluster, type RedisClientOptions, type RedisClusterOptions } from 'redis';
import { StoreOptionsError } from '../remote/store-options-error.ts';
import type { RedisConnection } from './own-link.ts';

/**
 * A connection to one server. The client neither reconnects nor keeps commands for later: `OwnLink` makes a new connection instead.
 *
 * @param connectTimeoutMs for the connection of the socket
 * @throws {StoreOptionsError} when the client does not take the options
 */
export function singleConnection(options: RedisClientOptions, connectTimeoutMs: number): RedisConnection {
  const client = clientOf({
    ...options,
    disableOfflineQueue: true,
    socket: { ...options.socket, connectTimeout: connectTimeoutMs, reconnectStrategy: false } as RedisClientOptions['socket'],
  });
  const connection: RedisConnection = {
    onBroken: () => {},
    connect: async () => void (await client.connect()),
    send: (_key, words, commandOptions) => client.sendCommand(words, commandOptions as object),
    destroy: () => quietly(() => client.destroy()),
  };
  client.on('error', () => connection.onBroken());
  return connection;
}

/**
 * Connections to the masters of a cluster, each made when it is first needed, so that one node which is gone does not keep the others from
 * being reached.
 *
 * @param connectTimeoutMs for the connection of a socket, and for the silence of a node that is asked about the cluster
 */
export function clusterConnection(options: RedisClusterOptions, connectTimeoutMs: number): RedisConnection {
  const cluster = createCluster({
    ...options,
    minimizeConnections: true,
    rootNodes: options.rootNodes.map((node) => ({
      ...node,
      socket: { ...node.socket, socketTimeout: connectTimeoutMs } as RedisClientOptions['socket'],
    })),
    defaults: {
      ...options.defaults,
      disableOfflineQueue: true,
      socket: {
        ...options.defaults?.socket,
        connectTimeout: connectTimeoutMs,
        reconnectStrategy: false,
      } as RedisClientOptions['socket'],
    },
  });
  const connection: RedisConnection = {
    onBroken: () => {},
    connect: async () => void (await cluster.connect()),
    send: (key, words, commandOptions) => cluster.sendCommand(key, false, [...words], commandOptions as object),
    destroy() {
      // Each by itself: the client of a node that is gone throws, and would keep the others from being ended.
      for (const { client } of [...cluster.masters, ...cluster.replicas]) quietly(() => client?.destroy());
      quietly(() => cluster.destroy());
    },
  };
  cluster.on('error', () => connection.onBroken());
  cluster.on('node-error', () => connection.onBroken());
  return connection;
}

function clientOf(options: RedisClientOptions): ReturnType<typeof createClient> {
  try {
    return createClient(options) as ReturnType<typeof createClient>;
  } catch (error) {
    throw new StoreOptionsError(`Redis page store: the client does not take the options of \`single\`: ${String(error)}`);
  }
}

/** `destroy` of a client throws when the client is closed already, which is what was wanted. */
function quietly(end: () => void): void {
  try {
    end();
  } catch {
    return;
  }
}
