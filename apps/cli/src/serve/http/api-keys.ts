import { createHash, timingSafeEqual } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { ReuseScope } from '@bufferwise/cache-manager';
import { CliError, UsageError } from '../../cli-error.ts';
import { ApiError } from './api-error.ts';

/** Somebody who may ask. Nobody's prompts are found by others. */
export interface Tenant {
  /** SHA-256 of the key; null where everybody may ask. */
  readonly digest: Buffer | null;
}

const EVERYBODY: Tenant = { digest: null };
const KEY = /^[\x21-\x7e]{1,512}$/;

/** The keys that open a server; without any, everybody may ask. */
export class ApiKeys {
  readonly #tenants: readonly Tenant[];

  constructor(keys: readonly string[]) {
    this.#tenants = keys.map((key) => ({ digest: sha256(key) }));
  }

  get isOpen(): boolean {
    return this.#tenants.length === 0;
  }

  /**
   * Who asks, by the `Authorization` header. How long it takes says nothing about the keys: digests are compared, all of them.
   *
   * @throws {ApiError} 401
   */
  tenantOf(authorization: string | undefined): Tenant {
    if (this.isOpen) return EVERYBODY;
    const [, key] = /^Bearer +(\S+) *$/i.exec(authorization ?? '') ?? [];
    if (key === undefined) throw unauthorized('give your API key as Authorization: Bearer KEY', 'missing_api_key');
    const digest = sha256(key);
    const found = this.#tenants.filter((tenant) => timingSafeEqual(tenant.digest as Buffer, digest));
    if (found.length === 0) throw unauthorized('this API key opens nothing here', 'invalid_api_key');
    return found[0];
  }
}

/**
 * The scope in which prompts may share their beginnings: those of one key, and of one `cache_salt` where the request has one.
 * A salt has 64 bits of a SHA-256, so no tenant finds another one's by chance.
 */
export function scopeOf({ digest }: Tenant, cacheSalt: string | null): ReuseScope | undefined {
  if (digest === null && cacheSalt === null) return undefined;
  const hash = createHash('sha256')
    .update(digest ?? '')
    .update('\0');
  if (cacheSalt !== null) hash.update(cacheSalt);
  return { salt: hash.digest().readBigUInt64LE(0) };
}

/**
 * Keys given one by one, and those of a file with one a line; empty lines and those that begin with # are skipped.
 *
 * @throws {CliError} when the file cannot be read or holds none; {UsageError} on a key that no header can carry
 */
export async function readApiKeys(key: string | undefined, path: string | undefined): Promise<ApiKeys> {
  const keys = [...(key === undefined ? [] : [key]), ...(path === undefined ? [] : await keysOfFile(path))];
  // The key itself is not told: whoever reads the log must not have it.
  if (!keys.every((each) => KEY.test(each)))
    throw new UsageError('an API key must have 1 to 512 visible ASCII characters and no spaces');
  return new ApiKeys([...new Set(keys)]);
}

async function keysOfFile(path: string): Promise<string[]> {
  const text = await readFile(path, 'utf8').catch((cause: NodeJS.ErrnoException) => {
    throw new CliError(`cannot read ${path}: ${cause.code ?? cause}. --api-keys takes a file with one key a line`);
  });
  const keys = text.split(/\r?\n/).map((line) => line.trim());
  const found = keys.filter((line) => line !== '' && !line.startsWith('#'));
  // An empty file must not open the server to everybody.
  if (found.length === 0) throw new CliError(`${path} holds no key; write one a line`);
  return found;
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

function unauthorized(message: string, code: string): ApiError {
  return new ApiError(message, { status: 401, type: 'authentication_error', code });
}
