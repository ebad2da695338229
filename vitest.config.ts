import { readFile } from 'node:fs/promises';
import { defineConfig, type Plugin } from 'vitest/config';

/** WGSL files are imported as text, in tests as in the builds. */
const wgsl: Plugin = {
  name: 'wgsl',
  enforce: 'pre',
  async load(id) {
    if (!id.endsWith('.wgsl')) return null;
    return `export default ${JSON.stringify(await readFile(id, 'utf8'))};`;
  },
};

const onSource = { resolve: { conditions: ['@bufferwise/source'] }, ssr: { resolve: { conditions: ['@bufferwise/source'] } } };

const folders = '{packages,apps,internal}/*';

export default defineConfig({
  test: {
    projects: [
      {
        ...onSource,
        plugins: [wgsl],
        test: {
          name: 'unit',
          include: [`${folders}/{src,test}/**/*.test.ts`],
          exclude: ['**/*.{gpu,browser,services}.test.ts', '**/node_modules/**', '**/dist/**'],
        },
      },
      {
        ...onSource,
        plugins: [wgsl],
        test: {
          name: 'gpu',
          include: [`${folders}/{src,test}/**/*.gpu.test.ts`],
          pool: 'forks',
          // Workers start with the environment in which WebGPU finds an adapter: a GPU, or the software device.
          globalSetup: ['./internal/webgpu-node/src/vitest-global-setup.ts'],
        },
      },
    ],
  },
});
