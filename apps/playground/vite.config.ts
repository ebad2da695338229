import { defaultClientConditions, defineConfig } from 'vite';
import { wgsl } from '../../scripts/vitest/wgsl.ts';
import { contentPolicy } from './build/content-policy.ts';
import { modelFiles } from './build/model-files.ts';

export default defineConfig({
  root: import.meta.dirname,
  // Works from any folder of any host.
  base: './',
  resolve: { conditions: ['@bufferwise/source', ...defaultClientConditions] },
  plugins: [wgsl, modelFiles, contentPolicy],
  worker: { format: 'es', plugins: () => [wgsl] },
  build: { target: 'es2022', sourcemap: true, assetsInlineLimit: 0 },
});
