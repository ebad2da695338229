import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { brotliDecompress } from 'node:zlib';
import { GpuSetupError } from './gpu-setup-error.ts';

/** Where the software device and the browser come from: an npm package that carries them compressed. */
export interface SparticuzPackage {
  readonly version: string;
  /** The unpacked bytes of `bin/<name>.br`. */
  inflate(name: string): Promise<Uint8Array>;
}

/** @throws {GpuSetupError} `no-software-gpu` on a platform it has no files for, or where it is not installed */
export async function findSparticuzPackage(): Promise<SparticuzPackage> {
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    throw new GpuSetupError(
      'no-software-gpu',
      `The software GPU is built for linux-x64 only, this is ${process.platform}-${process.arch}. Run where a GPU driver answers.`,
    );
  }
  let entry: string;
  try {
    entry = createRequire(import.meta.url).resolve('@sparticuz/chromium');
  } catch (cause) {
    throw new GpuSetupError(
      'no-software-gpu',
      'The software GPU comes from the npm package @sparticuz/chromium: `npm install @sparticuz/chromium`, with --global where the command was installed so.',
      { cause },
    );
  }
  // <package>/build/cjs/index.cjs
  const root = dirname(dirname(dirname(entry)));
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string };
  return {
    version,
    inflate: async (name) => promisify(brotliDecompress)(await readFile(join(root, 'bin', `${name}.br`))),
  };
}
