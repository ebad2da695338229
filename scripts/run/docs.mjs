import { serveFolder } from '../../apps/playground/serve/serve-folder.mjs';
import { dependencies } from './dependencies.mjs';
import { CommandError } from './process.mjs';
import { indented, progress, say, strong } from './terminal.mjs';

const PORT = 4174;

/** `docs [build] [--port N]`: builds the documentation and serves it to this machine; `build` only builds. */
export async function docs(args) {
  const onlyBuilds = args[0] === 'build' && args.length === 1;
  const port = onlyBuilds ? undefined : portOf(args);
  const { step } = progress(2);
  await step('dependencies', dependencies);
  // Only now: building uses what has just been installed.
  const { buildSite, siteFolder } = await import('../docs/build-site.mjs');
  await step('documentation', async () => {
    const { problems, numPages } = await buildSite();
    if (problems !== '') throw new CommandError(`The documentation has faults:\n\n${indented(problems)}`);
    return { note: `${numPages} pages and the API` };
  });
  if (onlyBuilds) {
    say('\nThe documentation is in docs/dist: a folder for any web server.');
    return 0;
  }
  const { url } = await serveFolder(siteFolder, port).catch((error) => {
    if (error.code !== 'EADDRINUSE') throw error;
    throw new CommandError(`Port ${port} is in use. Choose another one: npm run docs -- --port ${port + 1}`);
  });
  say(`\nThe documentation is at ${strong(url)}\nCtrl-C ends it.`);
  return new Promise(() => {});
}

function portOf(args) {
  if (args.length === 0) return PORT;
  const port = args[0] === '--port' && args.length === 2 ? Number(args[1]) : Number.NaN;
  if (Number.isInteger(port) && port >= 0 && port < 65536) return port;
  throw new CommandError('Usage: npm run docs -- [build | --port N], a number from 0 to 65535; 0 takes any that is free.');
}
