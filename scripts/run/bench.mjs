import { dependencies } from './dependencies.mjs';
import { CommandError, run } from './process.mjs';
import { softwareGpu } from './software-gpu.mjs';
import { sourceModule } from './source-module.mjs';
import { progress } from './terminal.mjs';
import { sourceFiles } from './workspace.mjs';

/** `bench [name …]`: the benchmarks whose path contains one of the names, each in a process of its own. */
export async function bench(names) {
  const all = sourceFiles('packages', (path) => /^packages\/[^/]+\/bench\/.*\.bench\.ts$/.test(path));
  const chosen = names.length === 0 ? all : all.filter((path) => names.some((name) => path.includes(name)));
  if (chosen.length === 0) {
    throw new CommandError(
      `No benchmark matches ${names.join(' or ')}. There are:\n${all.map((path) => `  ${path}`).join('\n') || '  none'}`,
    );
  }

  const { step, announce } = progress(2 + chosen.length);
  await step('dependencies', dependencies);
  const env = await step('software GPU', softwareGpu);
  let worst = 0;
  for (const path of chosen) {
    announce(path);
    const { code } = await run(process.execPath, ['--expose-gc', await runnable(path)], { env });
    worst = Math.max(worst, code);
  }
  return worst;
}

async function runnable(path) {
  const [part, name, ...rest] = path.split('/');
  const code = [
    `import bench from './${rest.join('/')}';`,
    `import { showFigures } from '../../scripts/run/bench-table.mjs';`,
    'showFigures(await bench());',
  ];
  return sourceModule(`${part}/${name}`, rest.join('-'), code.join('\n'));
}
