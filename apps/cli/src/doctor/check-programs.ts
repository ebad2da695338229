import { access, constants } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import type { Finding } from './finding.ts';

const PROGRAMS = [
  { name: 'redis-server', also: 'valkey-server', serves: 'tests of pages in Redis', packageName: 'redis-server' },
  { name: 'nats-server', also: undefined, serves: 'tests of prefill and decode over NATS', packageName: 'nats-server' },
] as const;

/** Servers that tests start. @param path the folders that programs are looked for in, as `PATH` has them */
export async function checkPrograms(path: string): Promise<Finding[]> {
  return Promise.all(
    PROGRAMS.map(async ({ name, also, serves, packageName }): Promise<Finding> => {
      const found = (await findProgram(name, path)) ?? (also && (await findProgram(also, path)));
      return {
        name,
        state: found ? 'ok' : 'warn',
        found: found ?? 'not on PATH',
        means: found ? `${serves} run` : `${serves} are skipped; all else works`,
        mend: found ? null : `install it, on Debian: apt-get install ${packageName}`,
      };
    }),
  );
}

async function findProgram(name: string, path: string): Promise<string | undefined> {
  for (const folder of path.split(delimiter).filter((each) => each !== '')) {
    const file = join(folder, name);
    const isThere = await access(file, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (isThere) return file;
  }
  return undefined;
}
