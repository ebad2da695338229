import { readFile } from 'node:fs/promises';
import type { Plugin } from 'vite';

/** WGSL files are imported as text, in tests as in the builds. */
export const wgsl: Plugin = {
  name: 'wgsl',
  enforce: 'pre',
  async load(id) {
    if (!id.endsWith('.wgsl')) return null;
    return `export default ${JSON.stringify(await readFile(id, 'utf8'))};`;
  },
};
