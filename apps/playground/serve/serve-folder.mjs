import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join, normalize, sep } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';

const TYPES = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json',
  '.map': 'application/json',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.woff2': 'font/woff2',
  '.safetensors': 'application/octet-stream',
};
/** What becomes smaller on its way. */
const PRESSED = new Set(['.html', '.js', '.css', '.json', '.svg', '.map']);

const press = promisify(gzip);

/**
 * Serves the files of a folder to this machine alone.
 *
 * @param {string} folder absolute
 * @param {number} port 0 for any that is free
 * @returns {Promise<{ url: string, close: () => Promise<void> }>} rejects when the port is taken
 */
export async function serveFolder(folder, port = 0) {
  const server = createServer((request, response) => {
    answer(folder, request, response).catch(() => response.destroy());
  });
  await new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  return {
    url: `http://localhost:${server.address().port}/`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(folder, request, response) {
  const path = pathOf(folder, request.url ?? '/');
  const bytes = path === null || !['GET', 'HEAD'].includes(request.method) ? null : await readFile(path).catch(() => null);
  if (bytes === null) {
    response.writeHead(404, { 'content-type': 'text/plain' }).end('There is nothing here.');
    return;
  }
  const extension = extname(path);
  const headers = { 'content-type': TYPES[extension] ?? 'application/octet-stream', 'cache-control': 'no-cache' };
  const pressed = PRESSED.has(extension) && String(request.headers['accept-encoding']).includes('gzip');
  const body = pressed ? await press(bytes) : bytes;
  if (pressed) headers['content-encoding'] = 'gzip';
  response.writeHead(200, { ...headers, 'content-length': body.length });
  response.end(request.method === 'HEAD' ? undefined : body);
}

/** The file that an address names; null when it leaves the folder or is no address. */
function pathOf(folder, url) {
  let name;
  try {
    name = decodeURIComponent(new URL(url, 'http://localhost').pathname);
  } catch {
    return null;
  }
  const path = normalize(join(folder, name.endsWith('/') ? `${name}index.html` : name));
  return path.startsWith(folder + sep) && !path.includes('\0') ? path : null;
}
