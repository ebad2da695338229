import { it } from 'vitest';
import { exampleFiles, programs } from './example-files.ts';

const running = exampleFiles(
  'run-on-gpu',
  programs.filter(({ runs }) => runs === 'gpu'),
  'run',
);

it.for([...running].map(([{ place }, file]) => ({ place, ...file })))('$place runs on WebGPU as it says', async ({ path }) => {
  await import(path);
});
