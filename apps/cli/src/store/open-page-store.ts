import { composedStore, NearPageStore } from '@bufferwise/adapter-connectors';
import type { PageStore } from '@bufferwise/adapter-kit';
import { BufferwiseError } from '@bufferwise/core-policy';
import { CliError } from '../cli-error.ts';
import { howToInstall, isInstalled } from '../input/installed-packages.ts';
import type { StoreAddress } from './store-address.ts';

export interface PageStoreChoice {
  /** Bytes that a folder may take. */
  readonly quotaBytes: number;
  /** Bytes of pages that are kept in memory before the store. Left out: none. */
  readonly nearBytes?: number;
  /** Where logins and keys are looked up that the address has not. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** A store that was opened, and whether it is of any use. */
export interface OpenedPageStore {
  readonly store: PageStore;
  /** What a person should know about a store that costs time only, in words; undefined while it answers. */
  trouble(): string | undefined;
}

/** What stores of others count when they do not answer. */
type Faults = Readonly<Partial<Record<'timeouts' | 'connectionErrors' | 'serverErrors' | 'skipped', number>>>;

/**
 * Opens the store of an address. A server that is down is no error: it may come later.
 *
 * @throws {CliError} when the address can never work: a folder that another process has, a bucket without keys, no client for Redis
 */
export async function openPageStore(address: StoreAddress, choice: PageStoreChoice): Promise<OpenedPageStore> {
  const far = await openFar(address, choice).catch((error: Error) => {
    if (error instanceof CliError || !(BufferwiseError.isInstance(error) || 'code' in error)) throw error;
    throw new CliError(`--store ${address.shown} cannot be used: ${error.message}`);
  });
  const { nearBytes } = choice;
  if (nearBytes === undefined) return far;
  return { store: composedStore([new NearPageStore({ quotaBytes: nearBytes }), far.store]), trouble: far.trouble };
}

/** Packages of servers are only loaded where one is named. */
async function openFar(address: StoreAddress, { quotaBytes, env }: PageStoreChoice): Promise<OpenedPageStore> {
  switch (address.kind) {
    case 'folder': {
      const { FilePageStore } = await import('@bufferwise/adapter-connectors/file-store');
      const store = await FilePageStore.open(address.folder, { quotaBytes });
      const words = store.isWritable
        ? undefined
        : `--store ${address.shown} may only be read: prefixes are found there, and none is kept`;
      return { store, trouble: () => words };
    }
    case 'redis': {
      if (!isInstalled('redis'))
        throw new CliError(
          `--store ${address.shown} needs the npm package redis, which is not installed: ${howToInstall('redis')}`,
        );
      const { RedisPageStore } = await import('@bufferwise/adapter-connectors/redis-store');
      const { keyPrefix, ttlMs } = address;
      const store = await RedisPageStore.open({
        server: redisServer(address, env),
        ...(keyPrefix !== undefined && { keyPrefix }),
        ...(ttlMs !== undefined && { defaultTtlMs: ttlMs }),
      });
      const isAway = () => store.statistics().connects === 0;
      return { store, trouble: () => troubleOf(address.shown, store.statistics(), isAway()) };
    }
    case 's3': {
      const { S3PageStore } = await import('@bufferwise/adapter-connectors/s3-store');
      const store = new S3PageStore(s3Options(address, env));
      return { store, trouble: () => troubleOf(address.shown, store.statistics(), false) };
    }
  }
}

function redisServer(address: Extract<StoreAddress, { kind: 'redis' }>, env: PageStoreChoice['env']) {
  const { hosts, isCluster, isEncrypted, database } = address;
  // Everybody on a machine sees the arguments of a command, and nobody else's environment.
  const { BUFFERWISE_STORE_USER: username, BUFFERWISE_STORE_PASSWORD: password } = env;
  const login = { ...(username && { username }), ...(password && { password }), ...address.credentials };
  const urls = hosts.map(({ host, port }) => `${isEncrypted ? 'rediss' : 'redis'}://${host}:${port}`);
  if (!isCluster) return { single: { url: urls[0], database, ...login } };
  // Nodes that a cluster tells of are reached as its roots are.
  const defaults = { ...login, ...(isEncrypted && { socket: { tls: true as const } }) };
  return { cluster: { rootNodes: urls.map((url) => ({ url })), defaults } };
}

/** @throws {CliError} on what is missing in the environment, by its name */
function s3Options({ bucket, keyPrefix }: Extract<StoreAddress, { kind: 's3' }>, env: PageStoreChoice['env']) {
  const region = env.AWS_REGION || env.AWS_DEFAULT_REGION;
  const endpoint = env.AWS_ENDPOINT_URL_S3 || env.AWS_ENDPOINT_URL;
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey, AWS_SESSION_TOKEN: sessionToken } = env;
  if (!accessKeyId || !secretAccessKey || !region)
    throw new CliError(
      `--store s3://${bucket} needs AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION in the environment; for another server than Amazon's AWS_ENDPOINT_URL, too`,
    );
  return {
    bucketUrl: endpoint ? `${endpointUrl(endpoint)}/${bucket}` : `https://${bucket}.s3.${region}.amazonaws.com`,
    region,
    accessKeyId,
    secretAccessKey,
    ...(sessionToken && { sessionToken }),
    ...(keyPrefix !== undefined && { keyPrefix }),
  };
}

function endpointUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '')
    throw new CliError('AWS_ENDPOINT_URL is no http or https address without a login; write https://HOST:PORT');
  return text.replace(/\/+$/, '');
}

function troubleOf(shown: string, counts: Faults, isAway: boolean): string | undefined {
  const { timeouts = 0, connectionErrors = 0, serverErrors = 0, skipped = 0 } = counts;
  if (isAway) return `--store ${shown} cannot be reached, or does not let this login in: prompts are computed without it`;
  if (connectionErrors + skipped > 0) return `--store ${shown} lost its connection: what it did not give is computed`;
  if (timeouts > 0) return `--store ${shown} did not answer in time: what it did not give is computed`;
  if (serverErrors > 0)
    return `--store ${shown} refused some pages, being full or read-only, or because it wants a login: what it did not give is computed`;
  return undefined;
}
