import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fingerprint, isStamped, writeStamp } from './fingerprint.mjs';
import { CommandError, runPnpm } from './process.mjs';
import { indented } from './terminal.mjs';
import { root, workspacePackages } from './workspace.mjs';

/** Kept inside node_modules, so that it goes when they go. */
const stamp = join(root, 'node_modules', '.cache', 'bufferwise', 'installed');

/** Installs what the lockfile names, unless that was done since a manifest or the lockfile last changed. */
export async function dependencies() {
  const manifests = [
    'pnpm-lock.yaml',
    'pnpm-workspace.yaml',
    'package.json',
    ...workspacePackages().map((each) => `${each.folder}/package.json`),
  ];
  const print = fingerprint(manifests.map((file) => join(root, file)));
  const folders = workspacePackages().filter((each) => hasDependencies(each.manifest));
  const present = folders.every((each) => existsSync(join(root, each.folder, 'node_modules')));
  if (present && isStamped(stamp, print)) return { note: 'up to date' };

  const { code, output } = await runPnpm(['install', '--frozen-lockfile', '--config.confirm-modules-purge=false'], {
    capture: true,
  });
  if (code !== 0)
    throw new CommandError(`Installing the dependencies failed:\n\n${indented(output)}\n\n${adviceFor(output)}`, code);
  writeStamp(stamp, print);
  return { note: 'installed' };
}

const hasDependencies = ({ dependencies = {}, devDependencies = {} }) =>
  Object.keys({ ...dependencies, ...devDependencies }).length > 0;

function adviceFor(output) {
  if (/OUTDATED_LOCKFILE/.test(output))
    return 'A package.json changed without the lockfile: run `npx --yes pnpm@12.4.2 install` and commit pnpm-lock.yaml.';
  if (/ENOTFOUND|ECONNREFUSED|ETIMEDOUT|EAI_AGAIN|ECONNRESET/.test(output))
    return 'The package registry cannot be reached: check the network (or the proxy settings of npm) and run the command again.';
  if (/ENOSPC/.test(output)) return 'The disk is full: make room and run the command again.';
  return 'Run the command again; if it fails the same way, remove the node_modules folders first.';
}
