import { findServer, SERVERS, type ServerName } from './find-server.ts';

/**
 * Whether tests that need a server can run: `describe.runIf(hasServer('redis'))`.
 *
 * @throws {Error} where it is missing in CI, which must not pass without it
 */
export function hasServer(name: ServerName): boolean {
  if (findServer(name) !== undefined) return true;
  if (!process.env.CI) return false;
  const { programs, debianPackage } = SERVERS[name];
  throw new Error(`Tests need ${programs.join(' or ')} on the PATH; Debian has it in ${debianPackage}.`);
}
