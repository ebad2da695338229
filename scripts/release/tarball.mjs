import { gunzipSync } from 'node:zlib';

const BLOCK_BYTES = 512;

/**
 * The regular files of a `.tgz` as package managers write it (ustar).
 *
 * @param {Buffer} tarball
 * @returns {{ path: string, bytes: Buffer }[]} `bytes` are views into the unpacked archive
 */
export function readTarball(tarball) {
  const archive = gunzipSync(tarball);
  const files = [];
  for (let at = 0; at + BLOCK_BYTES <= archive.length && archive[at] !== 0; ) {
    const field = (offset, length) =>
      archive
        .toString('utf8', at + offset, at + offset + length)
        .replace(/\0.*$/s, '')
        .trim();
    const size = Number.parseInt(field(124, 12), 8);
    const prefix = field(345, 155);
    const path = prefix === '' ? field(0, 100) : `${prefix}/${field(0, 100)}`;
    if (['', '0'].includes(field(156, 1)))
      files.push({ path, bytes: archive.subarray(at + BLOCK_BYTES, at + BLOCK_BYTES + size) });
    at += BLOCK_BYTES + Math.ceil(size / BLOCK_BYTES) * BLOCK_BYTES;
  }
  return files;
}
