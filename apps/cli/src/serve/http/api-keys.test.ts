import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ApiKeys, readApiKeys, scopeOf } from './api-keys.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bufferwise-keys-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function fileOf(text: string): Promise<string> {
  const path = join(folder, 'keys.txt');
  await writeFile(path, text);
  return path;
}

describe('API keys', () => {
  const keys = new ApiKeys(['first', 'second']);

  it('let those in who have one', () => {
    expect(keys.tenantOf('Bearer first')).not.toEqual(keys.tenantOf('bearer  second '));
  });

  it.each([
    undefined,
    '',
    'first',
    'Basic first',
    'Bearer',
    'Bearer third',
    'Bearer firs',
    'Bearer firstt',
    'Bearer first second',
  ])('keep others out: %s', (header) => {
    expect(() => keys.tenantOf(header)).toThrow(expect.objectContaining({ status: 401, type: 'authentication_error' }));
  });

  it('let everybody in where there are none', () => {
    expect(new ApiKeys([]).tenantOf(undefined)).toEqual({ digest: null });
  });

  it('come out of a file, without comments and empty lines', async () => {
    const read = await readApiKeys('zero', await fileOf('# ours\nfirst\r\n\n  second  \n'));
    for (const key of ['zero', 'first', 'second']) expect(read.tenantOf(`Bearer ${key}`).digest).not.toBeNull();
    expect(() => read.tenantOf('Bearer #')).toThrow();
  });

  it('are refused where a file has none, or is not there, or a key cannot be sent', async () => {
    await expect(readApiKeys(undefined, await fileOf('# nobody\n\n'))).rejects.toThrow(/holds no key/);
    await expect(readApiKeys(undefined, join(folder, 'nowhere'))).rejects.toThrow(/cannot read .*ENOENT/);
    const withSpace = readApiKeys(undefined, await fileOf('two words\n'));
    await expect(withSpace).rejects.toThrow(/visible ASCII/);
    await expect(withSpace).rejects.not.toThrow(/two words/);
  });
});

describe('the scope of a request', () => {
  const [first, second] = ['Bearer first', 'Bearer second'].map((header) => new ApiKeys(['first', 'second']).tenantOf(header));

  it('is one for each key and salt, and none for nobody without salt', () => {
    const scopes = [first, second].flatMap((tenant) => [null, '', 'a', 'b'].map((salt) => scopeOf(tenant, salt)?.salt));
    // An empty salt is no salt.
    expect(new Set(scopes).size).toBe(2 * 3);
    for (const salt of scopes) expect((salt as bigint) >= 0n && (salt as bigint) < 1n << 64n).toBe(true);
    expect(scopeOf({ digest: null }, null)).toBeUndefined();
    expect(scopeOf({ digest: null }, 'a')).toEqual(scopeOf({ digest: null }, 'a'));
  });
});
