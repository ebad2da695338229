import { fileURLToPath } from 'node:url';
import { buildPackages } from '../../../../scripts/run/build.mjs';

/** Builds the command and what it runs on; what has not changed comes from the cache. Returns the path of the command. */
export async function buildCommand(): Promise<string> {
  await buildPackages(['bufferwise']);
  return fileURLToPath(new URL('../../dist/bufferwise.js', import.meta.url));
}
