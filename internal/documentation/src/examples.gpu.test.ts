import { it, vi } from 'vitest';
import { exampleFiles, programs } from './example-files.ts';

// A software device on a busy machine takes its time to compile kernels.
vi.setConfig({ testTimeout: 180_000 });

const running = exampleFiles(
  'run-on-gpu',
  programs.filter(({ runs }) => runs === 'gpu'),
  'run',
);

it.for([...running].map(([{ place }, file]) => ({ place, ...file })))('$place runs on WebGPU as it says', async ({ path }) => {
  await import(path);
});
