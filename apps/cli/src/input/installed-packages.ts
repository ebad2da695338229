import { createRequire } from 'node:module';

/** Whether a package that is not installed with the command can be loaded by it. */
export function isInstalled(name: string): boolean {
  try {
    createRequire(import.meta.url).resolve(name);
    return true;
  } catch {
    return false;
  }
}

/** How a package gets to where the command finds it: beside itself. */
export function howToInstall(name: string): string {
  return `npm install ${name}, with --global where bufferwise was installed so; or npx --package bufferwise --package ${name} bufferwise …`;
}
