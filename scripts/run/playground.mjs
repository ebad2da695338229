import { join } from 'node:path';
import { serveFolder } from '../../apps/playground/serve/serve-folder.mjs';
import { dependencies } from './dependencies.mjs';
import { CommandError, runPnpm } from './process.mjs';
import { indented, progress, say, strong } from './terminal.mjs';
import { root } from './workspace.mjs';

const PORT = 4173;

/** `playground [--port N]`: builds the playground and serves it to this machine, until the person interrupts it. */
export async function playground(args) {
  const port = portOf(args);
  const { step } = progress(2);
  await step('dependencies', dependencies);
  await step('build', async () => {
    const { code, output } = await runPnpm(['--filter', '@bufferwise/playground', 'run', 'build'], { capture: true });
    if (code !== 0) throw new CommandError(`The build failed:\n\n${indented(output)}`, code);
    return {};
  });
  const { url } = await serveFolder(join(root, 'apps/playground/dist'), port).catch((error) => {
    if (error.code !== 'EADDRINUSE') throw error;
    throw new CommandError(`Port ${port} is in use. Choose another one: npm run playground -- --port ${port + 1}`);
  });
  say(`\nThe playground is at ${strong(url)}\nOpen it in a browser with WebGPU. Ctrl-C ends it.`);
  return new Promise(() => {});
}

function portOf(args) {
  if (args.length === 0) return PORT;
  const port = args[0] === '--port' && args.length === 2 ? Number(args[1]) : Number.NaN;
  if (Number.isInteger(port) && port >= 0 && port < 65536) return port;
  throw new CommandError('Usage: npm run playground -- [--port N], a number from 0 to 65535; 0 takes any that is free.');
}
