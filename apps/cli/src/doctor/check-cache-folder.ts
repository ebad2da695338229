import { readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { cacheFolder } from '@bufferwise-internal/webgpu-node';
import type { Finding } from './finding.ts';

/** Where the software device and the browser of the tests are kept. */
export async function checkCacheFolder(): Promise<Finding> {
  const folder = await cacheFolder();
  const kept = (await readdir(folder)).filter((name) => !name.startsWith('.') && !name.includes('.draft-'));
  const isLasting = !folder.startsWith(tmpdir()) || process.env.XDG_CACHE_HOME?.startsWith(tmpdir()) === true;
  return {
    name: 'cache folder',
    state: isLasting ? 'ok' : 'warn',
    found: `${folder} (${kept.length === 0 ? 'empty' : kept.sort().join(', ')})`,
    means: isLasting ? 'what is unpacked once stays' : 'it is a temporary one: what is unpacked may be gone next time',
    mend: isLasting ? null : 'let XDG_CACHE_HOME name a folder that you can write to',
  };
}
