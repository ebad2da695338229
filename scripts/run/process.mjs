import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './workspace.mjs';

/** A command that ended badly, told in the words of the person who has to mend it. */
export class CommandError extends Error {
  constructor(message, exitCode = 1) {
    super(message);
    this.name = 'CommandError';
    this.exitCode = exitCode;
  }
}

/** How long children may take to end by themselves after the first Ctrl-C. */
const GRACE_MS = 3000;

/** What is kept is read by programs, or shown again in our own colours. */
const withoutColour = { NO_COLOR: '1', FORCE_COLOR: undefined };

const children = new Set();
let interrupted = false;

export const wasInterrupted = () => interrupted;

/**
 * The first Ctrl-C (or termination) lets every child end by itself, a second one, or three seconds, ends them. The terminal has
 * told the children too, so nothing is forwarded at once: two interrupts would make some of them drop what they are doing.
 */
export function stopChildrenOnSignals() {
  const stop = (signal) => {
    const impatient = interrupted;
    interrupted = true;
    const end = () => {
      for (const child of children) child.kill('SIGTERM');
    };
    if (impatient || signal === 'SIGTERM') end();
    else setTimeout(end, GRACE_MS).unref();
    if (children.size === 0) process.exit(130);
  };
  process.on('SIGINT', () => stop('SIGINT'));
  process.on('SIGTERM', () => stop('SIGTERM'));
}

/**
 * Runs a command in the repository.
 *
 * @param {string} command
 * @param {string[]} args
 * @param {{ cwd?: string, env?: Record<string, string | undefined>, capture?: boolean, limitMs?: number }} [options] `capture`
 *   keeps what the command prints (both streams, in order) instead of showing it; after `limitMs` the command is ended
 * @returns {Promise<{ code: number, output: string, tooLong: boolean }>} `code` is 1 where the command was ended by a signal
 * @throws {CommandError} when the command cannot be started, or when the person has interrupted
 */
export function run(command, args, options = {}) {
  if (interrupted) throw new CommandError('Interrupted.', 130);
  const { cwd = root, env = {}, capture = false, limitMs } = options;
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd,
      env: { ...process.env, ...(capture ? withoutColour : {}), ...env },
      stdio: capture ? ['ignore', 'pipe', 'pipe'] : 'inherit',
    });
    children.add(child);
    let tooLong = false;
    const end = () => {
      tooLong = true;
      endForGood(child);
    };
    const limit = limitMs === undefined ? undefined : setTimeout(end, limitMs);
    const chunks = [];
    child.stdout?.on('data', (chunk) => chunks.push(chunk));
    child.stderr?.on('data', (chunk) => chunks.push(chunk));
    child.on('error', (error) => {
      clearTimeout(limit);
      children.delete(child);
      reject(new CommandError(`Could not start ${command}: ${error.message}`));
    });
    child.on('close', (code) => {
      clearTimeout(limit);
      children.delete(child);
      if (interrupted) reject(new CommandError('Interrupted.', 130));
      else resolve({ code: code ?? 1, output: Buffer.concat(chunks).toString('utf8'), tooLong });
    });
  });
}

/** Asks a child to end, and ends it when it does not. */
function endForGood(child) {
  child.kill('SIGTERM');
  setTimeout(() => child.kill('SIGKILL'), GRACE_MS).unref();
}

/** Runs a development tool of the repository, by the name of its npm package, on this very Node. */
export function runTool(tool, args, options) {
  return run(process.execPath, [binaryOf(tool), ...args], options);
}

function binaryOf(tool) {
  const folder = join(root, 'node_modules', tool);
  const { name, bin } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  return join(folder, typeof bin === 'string' ? bin : (bin[name.split('/').pop()] ?? Object.values(bin)[0]));
}

/** Runs the repository's own version of pnpm, which npm fetches when the machine does not have it. */
export function runPnpm(args, options = {}) {
  const [manager, version] = packageManager().split('@');
  const env = { CI: 'true', TURBO_TELEMETRY_DISABLED: '1', npm_config_update_notifier: 'false', ...options.env };
  return run(npx, ['--yes', `${manager}@${version}`, ...args], { ...options, env });
}

const npx = process.platform === 'win32' ? 'npx.cmd' : 'npx';

function packageManager() {
  return JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).packageManager;
}
