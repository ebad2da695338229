import { StateError } from '@bufferwise/core-policy';

/** Namespace inside which prefixes may match: a safety border between adapters' weights and between tenants. */
export interface ReuseScope {
  /** Identity of the LoRA weights, an unsigned 64-bit integer. New weights need a new id. */
  loraId?: number | bigint;
  /** Any unsigned 64-bit integer that keeps tenants apart. */
  salt?: number | bigint;
}

/** A scope in its one form, for telling the outside. */
export interface ScopeIds {
  readonly loraId?: bigint;
  readonly salt?: bigint;
}

/** One text for each scope: `7` and `7n` are equal, `{}` equals no scope, and no two parts can be confused. */
export function scopeKey(scope: ReuseScope | undefined): string {
  return `${part(scope?.loraId, 'loraId')}/${part(scope?.salt, 'salt')}`;
}

/** The parts of a scope's text, in decimal; null where the scope has none. */
export function scopeParts(key: string): { loraId: string | null; salt: string | null } {
  const [loraId, salt] = key.split('/');
  return { loraId: loraId || null, salt: salt || null };
}

/** The scope that a text of `scopeKey` stands for; ids that it does not have are absent. */
export function scopeIds(key: string): ScopeIds {
  const { loraId, salt } = scopeParts(key);
  return Object.freeze({ ...(loraId !== null && { loraId: BigInt(loraId) }), ...(salt !== null && { salt: BigInt(salt) }) });
}

function part(value: number | bigint | undefined | null, name: string): string {
  if (value === undefined || value === null) return '';
  const valid = typeof value === 'bigint' ? value >= 0n && value < 1n << 64n : Number.isSafeInteger(value) && value >= 0;
  if (!valid)
    throw new StateError(
      'invalid-scope',
      `scope.${name} is ${value}; it must be a whole number from 0 to 2^64 - 1 (a bigint beyond 2^53 - 1)`,
    );
  return value.toString();
}
