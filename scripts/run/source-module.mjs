import { randomUUID } from 'node:crypto';
import { rename } from 'node:fs/promises';
import { basename, join, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from './workspace.mjs';

/**
 * Bundles TypeScript of the workspace into one JavaScript module that Node can run: workspace packages from their source, WGSL
 * as text, everything installed left where it is.
 *
 * @param {string} folder the workspace package the code belongs to, relative to the root: what it imports is looked up from there
 * @param {string} name of the module
 * @param {string} code an ES module in TypeScript; it imports files relative to `folder`
 * @returns {Promise<string>} the absolute path of the module, inside the package's node_modules
 */
export async function sourceModule(folder, name, code) {
  const { build } = await import('esbuild');
  const outfile = join(root, folder, 'node_modules', '.cache', 'bufferwise', `${basename(name)}.mjs`);
  // Others may be starting the module of the same name now: they find the one from before or this one, and never half of it.
  const fresh = `${outfile}.${randomUUID()}`;
  await build({
    stdin: { contents: code, resolveDir: join(root, folder), sourcefile: `${name}.entry.ts`, loader: 'ts' },
    outfile: fresh,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    sourcemap: 'inline',
    conditions: ['@bufferwise/source'],
    loader: { '.wgsl': 'text' },
    plugins: [installedStaysOutside],
    logLevel: 'warning',
  });
  await rename(fresh, outfile);
  return outfile;
}

/** A dependency of a bundled package is not always one of the package it is bundled for, so it is named by where it lies. */
const installedStaysOutside = {
  name: 'installed-stays-outside',
  setup(build) {
    build.onResolve({ filter: /^[^./]/ }, async ({ path, importer, kind, resolveDir, pluginData }) => {
      if (pluginData === 'asked' || kind === 'entry-point' || path.startsWith('node:')) return undefined;
      const found = await build.resolve(path, { importer, kind, resolveDir, pluginData: 'asked' });
      if (found.errors.length > 0 || !found.path.includes(`${sep}node_modules${sep}`)) return found;
      return { path: pathToFileURL(found.path).href, external: true };
    });
  },
};

/** Imports a source file of the workspace into this process. */
export async function importSource(folder, file) {
  const path = await sourceModule(folder, file.replaceAll('/', '-'), `export * from './${file}';`);
  return import(`${pathToFileURL(path).href}?${Date.now()}`);
}
