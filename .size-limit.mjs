/**
 * What a web page pays for one package and everything it imports: bundled, minified, compressed with brotli. `measured` is the
 * figure that `limit` was set from; the room above it is for growth that nobody needs to argue about.
 */
import { libraries } from './scripts/run/workspace.mjs';

const BUDGETS = {
  'core-policy': { measured: '10.7 kB', limit: '14 kB' },
  'scratch-allocator': { measured: '11.7 kB', limit: '15.5 kB' },
  'cache-manager': { measured: '56.5 kB', limit: '65 kB' },
  'gpu-kernels': { measured: '36.7 kB', limit: '46 kB' },
  'adapter-kit': { measured: '10.7 kB', limit: '14 kB' },
  'adapter-attention': { measured: '31.3 kB', limit: '40 kB' },
  'adapter-ssm': { measured: '22.5 kB', limit: '29 kB' },
  'adapter-legacy': { measured: '35.7 kB', limit: '45 kB' },
  'adapter-onnxruntime': { measured: '58.9 kB', limit: '75 kB' },
  'adapter-connectors': { measured: '1 kB', limit: '75 kB' },
  'adapter-disaggregation': { measured: '14.7 kB', limit: '19 kB' },
  'hybrid-engine': { measured: '134.9 kB', limit: '170 kB' },
};

export default libraries().map(({ name, folder }) => {
  const budget = BUDGETS[folder.slice('packages/'.length)];
  if (budget === undefined) throw new Error(`${name} has no size budget: add it to .size-limit.mjs`);
  return { name, path: `${folder}/dist/index.js`, limit: budget.limit, ignore: ['node:*'] };
});
