import { describe, expect, it } from 'vitest';
import { UsageError } from '../cli-error.ts';
import { parseStoreAddress } from './store-address.ts';

const redis = { kind: 'redis', isCluster: false, isEncrypted: false, credentials: {}, database: 0 };

describe('an address of a store', () => {
  it.each([
    ['pages', 'pages'],
    ['./a b', './a b'],
    ['/var/cache/pages', '/var/cache/pages'],
    ['C:\\pages', 'C:\\pages'],
    ['a:b', 'a:b'],
    ['file:pages', 'pages'],
    ['file:///var/a%20b', '/var/a b'],
  ])('%s is a folder', (text, folder) => {
    expect(parseStoreAddress(text)).toEqual({ kind: 'folder', shown: folder, folder });
  });

  it.each([
    ['redis://cache', { ...redis, shown: 'redis://cache:6379', hosts: [{ host: 'cache', port: 6379 }] }],
    ['valkey://[::1]:7000/3', { ...redis, shown: 'valkey://[::1]:7000', hosts: [{ host: '[::1]', port: 7000 }], database: 3 }],
    [
      'rediss://me:p%40ss%2F@a:1,b:2?prefix=team:&ttl=60',
      {
        ...redis,
        shown: 'rediss://a:1,b:2',
        hosts: [
          { host: 'a', port: 1 },
          { host: 'b', port: 2 },
        ],
        isCluster: true,
        isEncrypted: true,
        credentials: { username: 'me', password: 'p@ss/' },
        keyPrefix: 'team:',
        ttlMs: 60_000,
      },
    ],
    [
      'VALKEYS+cluster://:secret@a',
      {
        ...redis,
        shown: 'valkeys+cluster://a:6379',
        hosts: [{ host: 'a', port: 6379 }],
        isCluster: true,
        isEncrypted: true,
        credentials: { password: 'secret' },
      },
    ],
  ])('%s is a server or a cluster', (text, address) => {
    expect(parseStoreAddress(text)).toEqual(address);
  });

  it.each([
    ['s3://pages', { kind: 's3', shown: 's3://pages', bucket: 'pages' }],
    ['s3://my.pages/team/one', { kind: 's3', shown: 's3://my.pages/team/one', bucket: 'my.pages', keyPrefix: 'team/one/' }],
  ])('%s is a bucket', (text, address) => {
    expect(parseStoreAddress(text)).toEqual(address);
  });

  it.each([
    ['http://cache:80', /scheme http, which is none; write a folder/],
    ['redis:cache', /begins with redis: but not with redis:\/\//],
    ['redis://', /host 1 of the redis address is none/],
    ['redis://a:1,', /host 2/],
    ['redis://a:0', /host 1/],
    ['redis://a:65536', /host 1/],
    ['redis://a:1/x', /a database after the last/],
    ['redis://a:1,b:2/1', /a cluster has only number 0/],
    ['redis://a:1?colour=red', /prefix=NAME and ttl=SECONDS/],
    ['redis://a:1?ttl=0', /ttl takes whole seconds/],
    ['redis://a:1?prefix={x}', /prefix takes/],
    ['redis://me:100%@a', /%25/],
    ['s3://Pages', /no s3 address; write s3:\/\/BUCKET/],
    ['s3://pages?x', /no s3 address/],
    ['file://somewhere/else', /file: address of no folder here/],
    ['file:', /file: address of no folder/],
  ])('%s is refused with the way out', (text, message) => {
    expect(() => parseStoreAddress(text)).toThrow(UsageError);
    expect(() => parseStoreAddress(text)).toThrow(message);
  });

  it.each([
    'redis://me:hunter2@',
    'redis://me:hunter2@a:99999',
    'redis://me:hunter2@a:1/x',
    'redis://me:hunter2@a:1?x=1',
    'redis://me:hunter2@a,b:x',
    'redis://me:hunter2%@a',
    'redis://me:hun/ter2?hunter2@a:1:1',
    'redis://:hunter2',
    'redis:me:hunter2@a',
    'http://me:hunter2@a',
    'rediss+cluster://a@hunter2#x',
    's3://key:hunter2@bucket',
    'file://me:hunter2@somewhere/else',
  ])('what could be a password in %s is not repeated', (text) => {
    expect(() => parseStoreAddress(text)).toThrow(UsageError);
    expect(() => parseStoreAddress(text)).not.toThrow(/ter2/);
  });

  it('does not show a login that it took', () => {
    expect(parseStoreAddress('redis://me:hunter2@a:1').shown).toBe('redis://a:1');
  });
});
