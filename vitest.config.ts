import { defaultClientConditions, defaultServerConditions } from 'vite';
import { defineConfig } from 'vitest/config';
import { browserWebGpu } from './scripts/vitest/browser-webgpu.ts';
import { builtPackages, testsThroughDoors } from './scripts/vitest/built-packages.ts';
import { chromium } from './scripts/vitest/chromium.ts';
import { wgsl } from './scripts/vitest/wgsl.ts';

/** `BUFFERWISE_TEST=built` tests what the packages ship instead of their source. */
const built = process.env.BUFFERWISE_TEST === 'built';

const source = built ? [] : ['@bufferwise/source'];
const common = {
  resolve: { conditions: [...source, ...defaultClientConditions] },
  ssr: { resolve: { conditions: [...source, ...defaultServerConditions] } },
  plugins: built ? [wgsl, builtPackages] : [wgsl],
};

/** Milliseconds. Ends what hangs; how fast a busy or a slow machine is, is not for tests to judge. */
const patience = { testTimeout: 60_000, hookTimeout: 60_000, expect: { poll: { timeout: 30_000 } } };

const folders = '{{packages,apps,internal}/*,examples}';
const others = ['**/*.{gpu,browser,page,services}.test.ts', '**/node_modules/**', '**/dist/**'];

export default defineConfig({
  test: {
    projects: [
      {
        ...common,
        test: {
          ...patience,
          name: 'unit',
          include: built
            ? [...testsThroughDoors(), 'examples/test/*.test.ts']
            : [`${folders}/{src,test}/**/*.test.ts`, 'scripts/**/*.test.mjs'],
          exclude: others,
        },
      },
      {
        ...common,
        test: {
          ...patience,
          name: 'gpu',
          include: [`${folders}/{src,test}/**/*.gpu.test.ts`],
          pool: 'forks',
          globalSetup: 'internal/webgpu-node/src/vitest-global-setup.ts',
        },
      },
      {
        ...common,
        plugins: [wgsl, browserWebGpu, chromium],
        // They are modules as they are. Found late, in a worker, they would have the tests loaded anew.
        optimizeDeps: { exclude: ['@huggingface/tokenizers', '@noble/hashes', 'idb'] },
        test: {
          ...patience,
          name: 'browser',
          globalSetup: 'scripts/vitest/web-socket-peer.ts',
          include: ['packages/gpu-kernels/{src,test}/**/*.gpu.test.ts', `${folders}/{src,test}/**/*.browser.test.ts`],
          browser: { enabled: true, headless: true, screenshotFailures: false, instances: [{ browser: 'chromium' }] },
        },
      },
      {
        ...common,
        test: {
          ...patience,
          name: 'page',
          expect: { poll: { timeout: 120_000 } },
          include: ['apps/playground/test/**/*.page.test.ts', 'examples/test/*.page.test.ts'],
          globalSetup: 'apps/playground/test/support/built-app.ts',
        },
      },
      {
        ...common,
        test: { ...patience, name: 'services', include: [`${folders}/{src,test}/**/*.services.test.ts`] },
      },
    ],
  },
});
