import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Servers that tests need: the names of their programs, the first one found is taken, and the package of Debian that has it. */
export const SERVERS = {
  redis: { programs: ['valkey-server', 'redis-server'], debianPackage: 'redis-server' },
  nats: { programs: ['nats-server'], debianPackage: 'nats-server' },
} as const;

export type ServerName = keyof typeof SERVERS;

/** Folders of servers that are not on the PATH of everybody. */
const MORE_FOLDERS = ['/usr/local/sbin', '/usr/sbin', '/sbin', '/usr/local/bin', '/usr/bin'];

/** @returns the path of the program, or undefined where it is not installed */
export function findServer(name: ServerName): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(delimiter).filter(Boolean), ...MORE_FOLDERS];
  return SERVERS[name].programs.flatMap((program) => folders.map((folder) => join(folder, program))).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
