import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { LOCALHOST } from '@bufferwise-internal/services';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CliError, UsageError } from '../../cli-error.ts';
import { type Certificate, readCertificate } from './certificate.ts';
import { openApp } from './open-app.ts';

const LIMITS = { maxBodyBytes: 1000, maxConnections: 100, requestMs: 20_000, stallMs: 20_000 };

let folder: string;
const file = (name: string) => join(folder, name);
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bufferwise-certificate-'));
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const files = {
    cert: LOCALHOST.cert,
    key: LOCALHOST.key,
    'other-key': privateKey.export({ type: 'pkcs8', format: 'pem' }),
    noise: 'no PEM',
  };
  for (const [name, content] of Object.entries(files)) await writeFile(file(name), content);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe('a certificate', () => {
  it('is read with its key, or not asked for at all', async () => {
    expect(await readCertificate(file('cert'), file('key'))).toEqual(LOCALHOST);
    expect(await readCertificate()).toBeUndefined();
  });

  it('without its key is a mistake in the command line', async () => {
    await expect(readCertificate(file('cert'), undefined)).rejects.toThrow(UsageError);
    await expect(readCertificate(undefined, file('key'))).rejects.toThrow(/belong together/);
  });

  it('with a key of another, or in a file that is none, is told before the model is read', async () => {
    await expect(readCertificate(file('cert'), file('other-key'))).rejects.toThrow(/are no certificate with its key/);
    await expect(readCertificate(file('noise'), file('key'))).rejects.toThrow(CliError);
    await expect(readCertificate(file('cert'), file('nowhere'))).rejects.toThrow(/ENOENT. --tls-key takes a file in PEM/);
  });

  it('makes a server speak HTTPS, and nothing else', async () => {
    const certificate = (await readCertificate(file('cert'), file('key'))) as Certificate;
    const app = openApp({ limits: LIMITS, certificate, onBug: () => {}, onReply: () => {} });
    app.get('/', async () => ({ ok: true }));
    try {
      const url = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
      expect(url.protocol).toBe('https:');
      const answer = await new Promise<string>((resolve, reject) => {
        request(url, { ca: LOCALHOST.cert }, (response) => resolve(text(response)))
          .on('error', reject)
          .end();
      });
      expect(JSON.parse(answer)).toEqual({ ok: true });
      const plain = connect(Number(url.port), '127.0.0.1');
      plain.end('GET / HTTP/1.1\r\nhost: localhost\r\n\r\n');
      expect(await text(plain).catch(() => '')).not.toContain('ok');
    } finally {
      await app.close();
    }
  });
});
