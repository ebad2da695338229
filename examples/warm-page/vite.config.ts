import { defaultClientConditions, defineConfig } from 'vite';
import { wgsl } from '../../scripts/vitest/wgsl.ts';

// Where the packages are installed, `publicDir` is all that is needed: the folder that has the model.
export default defineConfig({
  root: import.meta.dirname,
  base: './',
  publicDir: '../../models',
  resolve: { conditions: ['@bufferwise/source', ...defaultClientConditions] },
  plugins: [wgsl],
  worker: { format: 'es', plugins: () => [wgsl] },
  build: { target: 'es2022', outDir: '../node_modules/.cache/warm-page', emptyOutDir: true },
});
