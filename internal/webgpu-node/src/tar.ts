import { GpuSetupError } from './gpu-setup-error.ts';

/** One regular file of an archive. `bytes` is a view into the archive. */
export interface TarFile {
  /** Relative, with forward slashes, never leaving the folder it is unpacked into. */
  path: string;
  executable: boolean;
  bytes: Uint8Array;
}

const BLOCK = 512;

/**
 * Lists the regular files of a plain (ustar) archive. Folders are implied by paths; everything that could make unpacking write
 * elsewhere (links, devices, `..`, absolute paths) is refused.
 *
 * @throws {GpuSetupError} `gpu-unpack` when the archive is damaged or holds such an entry
 */
export function readTar(archive: Uint8Array): TarFile[] {
  const files: TarFile[] = [];
  let at = 0;
  while (at + BLOCK <= archive.length) {
    const header = archive.subarray(at, at + BLOCK);
    if (header.every((byte) => byte === 0)) return files;
    const name = text(header, 0, 100);
    const prefix = text(header, 257, 6).startsWith('ustar') ? text(header, 345, 155) : '';
    const path = prefix ? `${prefix}/${name}` : name;
    const size = octal(header, 124, 12, path);
    const type = text(header, 156, 1);
    const bytes = archive.subarray(at + BLOCK, at + BLOCK + size);
    if (bytes.length < size) throw damaged(`entry ${path} ends early`);
    if (type === '0' || type === '') {
      requireInside(path);
      files.push({ path, executable: (octal(header, 100, 8, path) & 0o111) !== 0, bytes });
    } else if (type !== '5') {
      throw damaged(`entry ${path} is of type ${type}; only files and folders are unpacked`);
    }
    at += BLOCK + Math.ceil(size / BLOCK) * BLOCK;
  }
  throw damaged('its end is missing');
}

function requireInside(path: string): void {
  const parts = path.split('/');
  const plain = parts.every((part) => part !== '' && part !== '.' && part !== '..');
  if (!plain || path.includes('\\') || path.includes(':')) throw damaged(`entry ${path} would be written outside its folder`);
}

function text(header: Uint8Array, offset: number, length: number): string {
  const field = header.subarray(offset, offset + length);
  const end = field.indexOf(0);
  return new TextDecoder().decode(end < 0 ? field : field.subarray(0, end));
}

function octal(header: Uint8Array, offset: number, length: number, path: string): number {
  const digits = text(header, offset, length).trim();
  if (!/^[0-7]*$/.test(digits)) throw damaged(`entry ${path} has no readable size or mode`);
  return digits === '' ? 0 : Number.parseInt(digits, 8);
}

function damaged(what: string): GpuSetupError {
  return new GpuSetupError('gpu-unpack', `The archive cannot be unpacked: ${what}. Reinstall @sparticuz/chromium.`);
}
