import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { serveFolder } from '../serve/serve-folder.mjs';

let folder: string;
let server: Awaited<ReturnType<typeof serveFolder>>;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'serve-folder-'));
  await mkdir(join(folder, 'public'));
  await writeFile(join(folder, 'public/index.html'), '<p>page</p>');
  await writeFile(join(folder, 'public/model.safetensors'), 'weights');
  await writeFile(join(folder, 'secret.txt'), 'secret');
  server = await serveFolder(join(folder, 'public'));
});
afterAll(async () => {
  await server.close();
  await rm(folder, { recursive: true });
});

/** Status of an answer to a path that is sent as it stands, as no browser would. */
const statusOf = (path: string, method = 'GET') =>
  new Promise<number | undefined>((resolve, reject) => {
    request(server.url, { path, method }, (response) => resolve(response.resume().statusCode))
      .on('error', reject)
      .end();
  });

test('a folder is its index, and text comes compressed to whoever takes it', async () => {
  const page = await fetch(server.url);
  expect(page.headers.get('content-type')).toMatch(/^text\/html/);
  expect(page.headers.get('content-encoding')).toBe('gzip');
  expect(await page.text()).toBe('<p>page</p>');
  const plain = await fetch(server.url, { headers: { 'accept-encoding': 'identity' } });
  expect(plain.headers.get('content-encoding')).toBeNull();
});

test('what does not become smaller comes as it is, with its length', async () => {
  const weights = await fetch(new URL('model.safetensors', server.url));
  expect(weights.headers.get('content-encoding')).toBeNull();
  expect(weights.headers.get('content-length')).toBe('7');
});

test.each([['/../secret.txt'], ['/..%2Fsecret.txt'], ['/%2e%2e/secret.txt'], ['/nothing.js'], ['/%E0%A4%A'], ['/index.html%00']])(
  'nothing is behind %s',
  async (path) => {
    expect(await statusOf(path)).toBe(404);
  },
);

test('nothing can be changed', async () => {
  expect(await statusOf('/index.html', 'PUT')).toBe(404);
  expect(await statusOf('/index.html', 'HEAD')).toBe(200);
});

test('a port that is taken is told', async () => {
  await expect(serveFolder(folder, Number(new URL(server.url).port))).rejects.toMatchObject({ code: 'EADDRINUSE' });
});
