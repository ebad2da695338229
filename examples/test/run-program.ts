import { execFile } from 'node:child_process';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { programModule, programs } from '../../scripts/run/example.mjs';

const folder = join(import.meta.dirname, '..');

/**
 * Runs a program to its end, in a process of its own, and answers what it prints. Tests of what packages ship run it on that: it is then a module
 * whose imports Node itself finds, as it does where the packages are installed.
 *
 * Rejects when it does not end well.
 */
export async function runProgram(name: keyof typeof programs): Promise<string> {
  const module = process.env.BUFFERWISE_TEST === 'built' ? await installedModule(programs[name].file) : await programModule(name);
  const { stdout } = await promisify(execFile)(process.execPath, [module], { cwd: join(folder, '..') });
  return stdout;
}

/** A program without types, and with the packages outside. */
async function installedModule(file: string): Promise<string> {
  const outfile = join(folder, 'node_modules/.cache', `${basename(file, '.ts')}-installed.mjs`);
  await build({
    entryPoints: [join(folder, file)],
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    packages: 'external',
  });
  return outfile;
}
