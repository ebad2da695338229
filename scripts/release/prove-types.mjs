import { writeFileSync } from 'node:fs';
import { runTool } from '../run/process.mjs';

/** Both ways in which TypeScript finds a package: as bundlers do, and as Node does. */
const RESOLUTIONS = [
  { moduleResolution: 'bundler', module: 'ESNext' },
  { moduleResolution: 'node16', module: 'Node16' },
];

/** What a project has besides that uses all of it, and the workspace packages that have the same: ambient types, and clients whose types are part of ours. */
const BESIDES = [
  { name: '@types/node', from: '.' },
  { name: '@webgpu/types', from: 'packages/gpu-kernels' },
  { name: 'vitest', from: '.' },
  { name: 'redis', from: 'apps/cli' },
  { name: '@nats-io/nats-core', from: 'packages/adapter-disaggregation' },
];

/**
 * Type-checks a project that imports everything there is to import, and looks into every declaration file. Problems, one sentence each.
 *
 * @param {import('./consumer.mjs').Consumer} consumer
 * @param {import('./pack.mjs').Pack[]} packs
 */
export async function proveTypes(consumer, packs) {
  for (const { name, from } of BESIDES) consumer.add(name, from);
  const names = packs.flatMap(({ name, manifest }) =>
    Object.entries(manifest.exports)
      .filter(([, targets]) => targets.types !== undefined)
      .map(([path]) => name + path.slice(1)),
  );
  const lines = names.map((name, index) => `import * as module${index} from '${name}';`);
  writeFileSync(
    consumer.path('all.ts'),
    `${lines.join('\n')}\nexport default [${names.map((_, i) => `module${i}`).join(', ')}];\n`,
  );
  return (await Promise.all(RESOLUTIONS.map((each) => typeCheck(consumer, each)))).flat();
}

async function typeCheck(consumer, { moduleResolution, module }) {
  const compilerOptions = {
    ...{ module, moduleResolution, target: 'ES2022', lib: ['ES2023', 'DOM'], types: ['node', '@webgpu/types'] },
    ...{ strict: true, noEmit: true, skipLibCheck: false, preserveSymlinks: false },
  };
  const config = consumer.path(`tsconfig.${moduleResolution}.json`);
  writeFileSync(config, JSON.stringify({ compilerOptions, files: ['use.ts', 'all.ts'] }));
  const { code, output } = await runTool('typescript', ['-p', config, '--pretty', 'false'], {
    cwd: consumer.folder,
    capture: true,
  });
  if (code === 0) return [];
  // What is wrong inside of packages of others is not for us to mend.
  const ours = output.split('\n').filter((line) => /^(?:use|all)\.ts|@bufferwise\//.test(line));
  return ours.map((line) => `TypeScript with moduleResolution ${moduleResolution}: ${line}`);
}
