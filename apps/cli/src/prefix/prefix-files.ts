import { createReadStream, createWriteStream } from 'node:fs';
import { rename, rm, stat } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ByteSource } from '@bufferwise/adapter-connectors/prefix-file';
import { CliError } from '../cli-error.ts';

/** Writes a file that is there whole, or not at all. Throws {CliError} when that cannot be done, and what `bytes` throws. */
export async function writeWhole(path: string, bytes: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<number> {
  const unfinished = `${path}.${process.pid}.unfinished`;
  try {
    await pipeline(Readable.from(bytes, { objectMode: false }), createWriteStream(unfinished), { signal });
    const { size } = await stat(unfinished);
    await rename(unfinished, path);
    return size;
  } catch (cause) {
    await rm(unfinished, { force: true }).catch(() => {});
    throw fileError('write', path, cause);
  }
}

/** Has a file read, which may be done more than once. Throws {CliError} when it cannot be read, and what `use` throws. */
export async function readFileWith<T>(path: string, use: (source: ByteSource) => Promise<T>): Promise<T> {
  const stream = createReadStream(path);
  try {
    return await use(stream);
  } catch (cause) {
    throw fileError('read', path, cause);
  } finally {
    stream.destroy();
  }
}

/** A {CliError} for what the file system says, anything else as it is. */
function fileError(verb: 'read' | 'write', path: string, cause: unknown): unknown {
  const { syscall, code } = cause as NodeJS.ErrnoException;
  return syscall === undefined ? cause : new CliError(`cannot ${verb} ${path}: ${code}`);
}
