import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { run } from './process.mjs';
import { importSource } from './source-module.mjs';

/** Debian asks this program before a package starts a service; 101 is no. Tests start what they need by themselves. */
const POLICY = '/usr/sbin/policy-rc.d';
const INSTALL_LIMIT_MS = 5 * 60_000;

/**
 * Sees to it that the servers are there which the tests of services start: found on this machine, else installed where that can be done
 * without asking anybody, which is as root on Debian and its like. Where that fails their tests are skipped, and fail in CI.
 *
 * @param {string[]} names of `SERVERS` in internal/services
 * @returns {Promise<{ note: string, value: string[] }>} what is missing, one sentence each with the way out
 */
export async function servers(names) {
  const { findServer, SERVERS } = await importSource('internal/services', 'src/index.ts');
  const missing = () => names.filter((name) => findServer(name) === undefined);
  const absent = missing();
  if (absent.length === 0) return { note: 'found', value: [] };
  const failure = await install(absent.map((name) => SERVERS[name].debianPackage));
  const lacking = missing();
  if (lacking.length === 0)
    return { note: `installed ${absent.map((name) => SERVERS[name].debianPackage).join(', ')}`, value: [] };
  const sentences = lacking.map((name) => {
    const { programs, debianPackage } = SERVERS[name];
    return `Tests of ${name} need ${programs.join(' or ')} on the PATH (${failure}): install it, on Debian with \`apt-get install ${debianPackage}\`, and run \`npm test services\`.`;
  });
  return { note: `without ${lacking.join(', ')}: their tests do not run`, value: sentences };
}

/** @returns {Promise<string>} why it could not be done; empty when it was */
async function install(packages) {
  if (process.getuid?.() !== 0) return 'only root can install it here';
  if (!existsSync('/usr/bin/apt-get')) return 'there is no apt-get to install it with';
  const quiet = !existsSync(POLICY);
  if (quiet) writeFileSync(POLICY, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  try {
    if (await aptGet('install', ...packages)) return '';
    await aptGet('update');
    return (await aptGet('install', ...packages)) ? '' : 'apt-get could not install it';
  } finally {
    if (quiet) rmSync(POLICY, { force: true });
  }
}

async function aptGet(command, ...packages) {
  const options = command === 'install' ? ['--yes', '--no-install-recommends'] : [];
  const { code } = await run('apt-get', [command, '-q', ...options, ...packages], {
    env: { DEBIAN_FRONTEND: 'noninteractive' },
    capture: true,
    limitMs: INSTALL_LIMIT_MS,
  });
  return code === 0;
}
