import type { Options } from 'tsup';

/** The one build of every published package: ESM, types beside the code, source maps, nothing bundled that is a dependency. */
export function libraryConfig(entry: Record<string, string> = { index: 'src/index.ts' }): Options {
  return {
    entry,
    format: ['esm'],
    target: 'es2022',
    platform: 'neutral',
    clean: true,
    sourcemap: true,
    loader: { '.wgsl': 'text' },
    // TypeScript 6 reports the options that tsup still sets for declaration files.
    dts: { compilerOptions: { ignoreDeprecations: '6.0' } },
  };
}
