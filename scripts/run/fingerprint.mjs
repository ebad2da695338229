import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** One digest over the contents of files, their order and this machine's kind of Node. */
export function fingerprint(files) {
  const hash = createHash('sha256').update(`${process.versions.modules} ${process.platform} ${process.arch}\n`);
  for (const file of files) hash.update(`${file}\n`).update(readFileSync(file)).update('\0');
  return hash.digest('hex');
}

/** Whether the work that `stamp` stands for was done with this very fingerprint. */
export const isStamped = (stamp, print) => existsSync(stamp) && readFileSync(stamp, 'utf8') === print;

export function writeStamp(stamp, print) {
  mkdirSync(dirname(stamp), { recursive: true });
  writeFileSync(stamp, print);
}
