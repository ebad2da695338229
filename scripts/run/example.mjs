import { join } from 'node:path';
import { serveFolder } from '../../apps/playground/serve/serve-folder.mjs';
import { dependencies } from './dependencies.mjs';
import { CommandError, run } from './process.mjs';
import { softwareGpu } from './software-gpu.mjs';
import { sourceModule } from './source-module.mjs';
import { progress, say, strong } from './terminal.mjs';
import { root } from './workspace.mjs';

/** What examples/README.md tells of, and the file that is each. */
export const programs = {
  'prefix-reuse': { file: 'prefix-reuse.ts' },
  'two-chats': { file: 'two-chats.ts', needsGpu: true },
  'page-store': { file: 'page-store/prove.ts' },
  'hand-over': { file: 'hand-over.ts' },
};
const PAGE = 'warm-page';

/** `example <name> [arguments]`: runs a program of examples/ on the source of the packages; serves the one that is a page. */
export async function example([name, ...args]) {
  if (name !== PAGE && !Object.hasOwn(programs, name ?? '')) {
    throw new CommandError(`Usage: npm run example -- <name>. The examples are ${[...Object.keys(programs), PAGE].join(', ')}.`);
  }
  const { step } = progress();
  await step('dependencies', dependencies);
  if (name === PAGE) {
    const { url } = await serveFolder(await builtPage());
    say(`\nThe page is at ${strong(url)}\nOpen it in a browser with WebGPU. Ctrl-C ends it.`);
    return new Promise(() => {});
  }
  const env = programs[name].needsGpu ? await step('software GPU', softwareGpu) : {};
  const { code } = await run(process.execPath, [await programModule(name), ...args], { env });
  return code;
}

/** One module with the program and the packages' source. @returns its absolute path */
export const programModule = (name) => sourceModule('examples', name, `import './${programs[name].file}';`);

/** Builds the page. @returns the absolute path of the folder to serve */
export async function builtPage() {
  const { build } = await import('vite');
  await build({ configFile: join(root, 'examples', PAGE, 'vite.config.ts'), logLevel: 'error' });
  return join(root, 'examples/node_modules/.cache', PAGE);
}
