import { playwright } from '@vitest/browser-playwright';
import { type Plugin, runnerImport } from 'vite';

/** The part of internal/webgpu-node that is used here. It is loaded as it runs, so that no other project waits for it. */
interface Browsers {
  chromiumForTests(): Promise<{ executablePath: string; args: string[]; env?: Record<string, string> }>;
}

/**
 * Runs the tests of its project in the headless Chromium that comes from npm. The browser is unpacked only when the project is
 * really asked for: a hook of order `post` is not reached in projects that `--project` leaves out.
 */
export const chromium: Plugin = {
  name: 'chromium',
  config: {
    order: 'post',
    async handler() {
      const { module } = await runnerImport<Browsers>('internal/webgpu-node/src/index.ts');
      const { executablePath, args, env } = await module.chromiumForTests();
      return { test: { browser: { provider: playwright({ launchOptions: { executablePath, args, env } }) } } };
    },
  },
};
