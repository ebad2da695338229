/** WGSL files are modules whose default export is their text. */
const wgslAsText = { '.wgsl': 'text' };

/** TypeScript 6 reports the options that tsup still sets for declaration files. */
const dtsUnderTypeScript6 = { compilerOptions: { ignoreDeprecations: '6.0' } };

/**
 * The one build of every published package: ESM, types beside the code, source maps, nothing bundled that is a dependency.
 *
 * @param {Record<string, string>} [entry] output name to source file, one for each sub-path of `exports`
 * @returns {import('tsup').Options}
 */
export function libraryConfig(entry = { index: 'src/index.ts' }) {
  return {
    entry,
    format: ['esm'],
    target: 'es2022',
    platform: 'neutral',
    clean: true,
    sourcemap: true,
    loader: wgslAsText,
    dts: dtsUnderTypeScript6,
  };
}

/**
 * A command for Node in one executable file. Private workspace packages are bundled, everything that is installed by itself stays
 * an import.
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
    sourcemap: true,
    splitting: false,
    dts: false,
    loader: wgslAsText,
    banner: { js: '#!/usr/bin/env node' },
    noExternal: [/^@bufferwise-internal\//],
  };
}
