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
  await build({ root, configFile: join(root, 'vite.config.ts'), logLevel: 'warn' });
  const server = await serveFolder(join(root, 'dist'));
  project.provide('playgroundUrl', server.url);
  return server.close;
}
