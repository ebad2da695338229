import { fileURLToPath } from 'node:url';
import { UsageError } from '../cli-error.ts';

/** Who is let in. */
export interface Credentials {
  readonly username?: string;
  readonly password?: string;
}

/** Where prefixes are kept outside of the process. `shown` is the address for people, without what is secret. */
export type StoreAddress =
  | { readonly kind: 'folder'; readonly shown: string; readonly folder: string }
  | {
      readonly kind: 'redis';
      readonly shown: string;
      /** Every one of a cluster is a way into it; a single server is alone. */
      readonly hosts: readonly { readonly host: string; readonly port: number }[];
      readonly isCluster: boolean;
      readonly isEncrypted: boolean;
      readonly credentials: Credentials;
      /** Of a single server; 0 in a cluster. */
      readonly database: number;
      readonly keyPrefix?: string;
      readonly ttlMs?: number;
    }
  | { readonly kind: 's3'; readonly shown: string; readonly bucket: string; readonly keyPrefix?: string };

const SCHEMES =
  'a folder, file:FOLDER, redis://HOST:PORT (several between commas are a cluster; also rediss, valkey, valkeys, and each with +cluster), s3://BUCKET/PREFIX';
const REDIS = /^(redis|rediss|valkey|valkeys)(\+cluster)?$/;
const DEFAULT_PORT = 6379;
const MAX_HOSTS = 64;
const MAX_TTL_S = 10 * 365 * 86_400;

/**
 * Reads what `--store` was given: a folder, or an address. No message repeats what could hold a password.
 *
 * @throws {UsageError} on a scheme that is none, and on parts that mean nothing
 */
export function parseStoreAddress(text: string): StoreAddress {
  // One letter is a drive.
  const [, scheme = '', rest = ''] = /^([a-z][a-z0-9+.-]+):(.*)$/is.exec(text) ?? [];
  const name = scheme.toLowerCase();
  if (name === 'file') return folderOf(text, rest);
  if (REDIS.test(name)) return redisOf(name, afterSlashes(name, rest));
  if (name === 's3') return s3Of(afterSlashes(name, rest));
  if (name !== '' && rest.startsWith('//'))
    throw new UsageError(`--store has the scheme ${name}, which is none; write ${SCHEMES}`);
  return { kind: 'folder', shown: text, folder: text };
}

function folderOf(text: string, rest: string): StoreAddress {
  const refuse = () => new UsageError('--store is a file: address of no folder here; write file:FOLDER or file:///FOLDER');
  if (rest === '') throw refuse();
  if (!rest.startsWith('//')) return { kind: 'folder', shown: rest, folder: rest };
  try {
    const folder = fileURLToPath(text);
    return { kind: 'folder', shown: folder, folder };
  } catch {
    throw refuse();
  }
}

function redisOf(scheme: string, rest: string): StoreAddress {
  const [, , cluster] = REDIS.exec(scheme) ?? [];
  const parts = /^(?:(.*)@)?([^@/?#]*)(?:\/([^@/?#]*))?(?:\?([^@#]*))?$/s.exec(rest);
  if (parts === null)
    throw new UsageError(
      `--store is no ${scheme} address; write ${scheme}://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?prefix=NAME&ttl=SECONDS, of which only HOST must be there, with %40 for @ and %2F for / in a password`,
    );
  const [, login, hostList, databaseText = '', query = ''] = parts;
  const hosts = hostList.split(',').map((each, i) => hostOf(scheme, each, i));
  if (hosts.length > MAX_HOSTS)
    throw new UsageError(`--store names ${hosts.length} hosts; ${MAX_HOSTS} are enough to find a cluster`);
  const isCluster = cluster !== undefined || hosts.length > 1;
  const database = wholeNumber(databaseText === '' ? '0' : databaseText, 0, 65_535);
  if (database === undefined)
    throw new UsageError(`--store has a database after the last / that is none; write ${scheme}://HOST:PORT/0`);
  if (isCluster && database !== 0)
    throw new UsageError('--store names a database, but a cluster has only number 0; leave it out');
  return {
    kind: 'redis',
    shown: `${scheme}://${hosts.map(({ host, port }) => `${host}:${port}`).join(',')}`,
    hosts,
    isCluster,
    isEncrypted: /^(?:rediss|valkeys)/.test(scheme),
    credentials: loginOf(scheme, login),
    database,
    ...redisQuery(query),
  };
}

function hostOf(scheme: string, text: string, index: number): { host: string; port: number } {
  const [, inBrackets, plain, port = String(DEFAULT_PORT)] =
    /^(?:(\[[0-9a-f:.]+\])|([a-z0-9._-]+))(?::(\d{1,5}))?$/i.exec(text) ?? [];
  const host = inBrackets ?? plain;
  const number = wholeNumber(port, 1, 65_535);
  // What stands there may be a password whose @ was forgotten.
  if (host === undefined || number === undefined)
    throw new UsageError(
      `--store: host ${index + 1} of the ${scheme} address is none; write HOST:PORT with a port from 1 to 65535, and commas between several`,
    );
  return { host, port: number };
}

function loginOf(scheme: string, login: string | undefined): Credentials {
  if (login === undefined) return {};
  const end = login.indexOf(':');
  try {
    const [username, password] = [end < 0 ? login : login.slice(0, end), end < 0 ? '' : login.slice(end + 1)].map(
      decodeURIComponent,
    );
    return { ...(username !== '' && { username }), ...(password !== '' && { password }) };
  } catch {
    throw new UsageError(`--store: user or password of the ${scheme} address have a % that stands for nothing; write %25 for it`);
  }
}

function redisQuery(query: string): { keyPrefix?: string; ttlMs?: number } {
  const words = new URLSearchParams(query);
  for (const word of words.keys())
    if (word !== 'prefix' && word !== 'ttl')
      throw new UsageError('--store: after the ? of the address may stand prefix=NAME and ttl=SECONDS');
  const [keyPrefix, ttl] = [words.get('prefix'), words.get('ttl')];
  if (keyPrefix !== null && !/^[\w.:/-]{1,100}$/.test(keyPrefix))
    throw new UsageError('--store: prefix takes 1 to 100 letters, digits, and -, _, ., : and /');
  const seconds = ttl === null ? undefined : wholeNumber(ttl, 1, MAX_TTL_S);
  if (ttl !== null && seconds === undefined) throw new UsageError(`--store: ttl takes whole seconds, 1 to ${MAX_TTL_S}`);
  return { ...(keyPrefix !== null && { keyPrefix }), ...(seconds !== undefined && { ttlMs: 1000 * seconds }) };
}

function s3Of(rest: string): StoreAddress {
  const [, bucket, keyPrefix = ''] = /^([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/([\w./-]*))?$/.exec(rest) ?? [];
  if (bucket === undefined)
    throw new UsageError(
      '--store is no s3 address; write s3://BUCKET or s3://BUCKET/PREFIX. Keys, region and endpoint come from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT_URL',
    );
  const shown = `s3://${bucket}${keyPrefix === '' ? '' : `/${keyPrefix}`}`;
  return { kind: 's3', shown, bucket, ...(keyPrefix !== '' && { keyPrefix: keyPrefix.replace(/\/*$/, '/') }) };
}

function afterSlashes(scheme: string, rest: string): string {
  if (rest.startsWith('//')) return rest.slice(2);
  throw new UsageError(`--store begins with ${scheme}: but not with ${scheme}://; write ${SCHEMES}`);
}

function wholeNumber(text: string, min: number, max: number): number | undefined {
  const value = Number(text);
  return /^\d+$/.test(text) && value >= min && value <= max ? value : undefined;
}
