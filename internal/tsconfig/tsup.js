/** WGSL files are modules whose default export is their text. */
const wgslAsText = { '.wgsl': 'text' };

/**
 * The one build of every published package: ESM, types beside the code, source maps, nothing bundled that is a dependency.
 *
 * The declaration build sees shipped code only, without the types of Node that tests bring in: what would not run in a browser
 * does not build.
 *
 * @param {Record<string, string>} [entry] output name to source file, one for each sub-path of `exports`
 * @param {{ types?: string[] }} [platform] packages of ambient types that shipped code relies on, such as `@webgpu/types`
 * @returns {import('tsup').Options}
 */
export function libraryConfig(entry = { index: 'src/index.ts' }, { types = [] } = {}) {
  return {
    entry,
    format: ['esm'],
    target: 'es2022',
    platform: 'neutral',
    clean: true,
    sourcemap: true,
    // As it is written: `node:` is how every bundler and platform knows what is Node's own.
    removeNodeProtocol: false,
    external: [/^node:/],
    loader: wgslAsText,
    // TypeScript 6 reports an option that tsup still sets for declaration files.
    dts: { compilerOptions: { ignoreDeprecations: '6.0', types } },
  };
}

/**
 * A command for Node in one executable file, which is published: no source and no map. Private workspace packages are bundled, everything
 * that is installed by itself stays an import.
 *
 * @param {Record<string, string>} entry output name to source file
 * @returns {import('tsup').Options}
 */
export function commandConfig(entry) {
  return {
    entry,
    format: ['esm'],
    target: 'node20',
    platform: 'node',
    clean: true,
    splitting: false,
    removeNodeProtocol: false,
    dts: false,
    loader: wgslAsText,
    banner: { js: '#!/usr/bin/env node' },
    noExternal: [/^@bufferwise-internal\//],
  };
}
