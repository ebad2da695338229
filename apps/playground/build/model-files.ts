import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Plugin } from 'vite';

const FOLDER = join(import.meta.dirname, '../../../models/whaler-1m');
const FILES = ['config.json', 'tokenizer.json', 'model.safetensors'];

/** The demo model's files as they are, below `model/` of the page's own address: nothing is fetched from elsewhere. */
export const modelFiles: Plugin = {
  name: 'model-files',
  async buildStart() {
    if (this.meta.watchMode || this.environment?.mode === 'dev') return;
    for (const name of FILES)
      this.emitFile({ type: 'asset', fileName: `model/${name}`, source: await readFile(join(FOLDER, name)) });
  },
  configureServer(server) {
    server.middlewares.use('/model', async (request, response, next) => {
      const name = FILES.find((file) => request.url?.split('?')[0] === `/${file}`);
      if (name === undefined) return next();
      response.end(await readFile(join(FOLDER, name)));
    });
  },
};
