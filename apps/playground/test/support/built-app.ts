import { join } from 'node:path';
import { build } from 'vite';
import type { TestProject } from 'vitest/node';
import { serveFolder } from '../../serve/serve-folder.mjs';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Address at which the built app is served. */
    playgroundUrl: string;
  }
}

/** Builds the app from the source as it is now, and serves it while the tests of this project run. */
export default async function serveBuiltApp(project: TestProject): Promise<() => Promise<void>> {
  const root = join(import.meta.dirname, '../..');
  // Apart from what is served to people at the same time.
  const outDir = join(root, 'node_modules/.cache/tested');
  await build({ root, configFile: join(root, 'vite.config.ts'), logLevel: 'error', build: { outDir, emptyOutDir: true } });
  const server = await serveFolder(outDir);
  project.provide('playgroundUrl', server.url);
  return server.close;
}
