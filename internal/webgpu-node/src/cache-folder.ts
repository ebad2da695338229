import { randomUUID } from 'node:crypto';
import { chmod, lstat, mkdir, mkdtemp, rename, rm, stat, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { GpuSetupError } from './gpu-setup-error.ts';
import type { TarFile } from './tar.ts';

/**
 * A folder of this user that outlives the process: `$XDG_CACHE_HOME/bufferwise`, else `~/.cache/bufferwise`, else one below the
 * system's temporary folder that nobody else can write to (libraries are loaded from here).
 */
export async function cacheFolder(): Promise<string> {
  const base = process.env.XDG_CACHE_HOME || join(homedir(), '.cache');
  const preferred = join(base, 'bufferwise');
  if (await canWrite(preferred)) return preferred;
  const uid = process.getuid?.() ?? 0;
  const shared = join(tmpdir(), `bufferwise-${uid}`);
  try {
    await mkdir(shared, { recursive: true, mode: 0o700 });
    const found = await lstat(shared);
    if (found.isDirectory() && found.uid === uid && (found.mode & 0o022) === 0 && (await canWrite(shared))) return shared;
  } catch {
    // Somebody else's file of that name: take a fresh folder instead.
  }
  return mkdtemp(join(tmpdir(), 'bufferwise-'));
}

async function canWrite(folder: string): Promise<boolean> {
  const probe = join(folder, `.probe-${process.pid}-${randomUUID()}`);
  try {
    await mkdir(folder, { recursive: true });
    await writeFile(probe, '');
    await rm(probe);
    return true;
  } catch {
    return false;
  }
}

/**
 * Gives a folder that holds all of `expected`, making it from `files()` when it is not there. It appears whole or not at all:
 * files are written beside it and renamed at the end, so processes that start together agree on one folder, and a process
 * killed half-way leaves nothing that is taken for complete.
 *
 * @param expected paths of files, relative to `folder`
 * @throws {GpuSetupError} `gpu-unpack` when the folder cannot be made
 */
export async function ensureUnpacked(
  folder: string,
  expected: readonly string[],
  files: () => Promise<TarFile[]>,
): Promise<void> {
  if (await isComplete(folder, expected)) return;
  const draft = `${folder}.draft-${process.pid}-${randomUUID()}`;
  try {
    for (const file of await files()) {
      const target = join(draft, file.path);
      await mkdir(dirname(target), { recursive: true });
      await writeFile(target, file.bytes);
      await chmod(target, file.executable ? 0o755 : 0o644);
    }
    await putInPlace(draft, folder, expected);
  } catch (cause) {
    throw new GpuSetupError(
      'gpu-unpack',
      `Cannot unpack into ${folder}: ${(cause as Error).message}. Free disk space, or set XDG_CACHE_HOME.`,
      {
        cause,
      },
    );
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
  if (!(await isComplete(folder, expected))) {
    throw new GpuSetupError('gpu-unpack', `${folder} lacks one of ${expected.join(', ')}. Reinstall @sparticuz/chromium.`);
  }
}

async function putInPlace(draft: string, folder: string, expected: readonly string[]): Promise<void> {
  try {
    await rename(draft, folder);
  } catch (cause) {
    // Another process was first, which is as good; or what lies there is incomplete and makes room.
    if (await isComplete(folder, expected)) return;
    if (!['ENOTEMPTY', 'EEXIST', 'ENOTDIR', 'EISDIR'].includes((cause as NodeJS.ErrnoException).code ?? '')) throw cause;
    const aside = `${draft}.aside`;
    await rename(folder, aside);
    await rm(aside, { recursive: true, force: true });
    await putInPlace(draft, folder, expected);
  }
}

async function isComplete(folder: string, expected: readonly string[]): Promise<boolean> {
  const found = await Promise.all(
    expected.map((path) =>
      stat(join(folder, path)).then(
        (file) => file.isFile(),
        () => false,
      ),
    ),
  );
  return found.every(Boolean);
}
