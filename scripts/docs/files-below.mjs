import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/** @returns {string[]} every file in a folder and below it, absolute if the folder is */
export function filesBelow(folder) {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name));
}
