import { randomBytes } from 'node:crypto';
import { link, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { ConnectorError } from '../errors.ts';

/** Who holds a folder. */
interface Holder {
  readonly host: string;
  readonly pid: number;
  /** What tells a process from a later one of the same number; empty where the system does not say. */
  readonly birth: string;
  readonly released?: boolean;
}

const LOCK = /^lock-(\d{1,15})$/;

/** Locks that this process gave back, but could not mark so on a disk that is full or may only be read by now. */
const unmarked = new Set<string>();

/**
 * A folder for one store at a time, also among processes. Locks are numbered, and the highest one counts: whoever finds it released,
 * or its holder ended, links the next number, and of several who do that the file system lets one win. The last lock stays as a file, so
 * that numbers never begin anew.
 *
 * @returns what releases the folder, also where the disk does not let that be written down
 * @throws {ConnectorError} `store-locked` when somebody else has it, or may have
 */
export async function lockFolder(folder: string): Promise<() => Promise<void>> {
  const me: Holder = { host: hostname(), pid: process.pid, birth: await birthOf(process.pid) };
  const numbers = await lockNumbers(folder);
  const last = Math.max(0, ...numbers);
  if (last > 0) await checkGone(folder, last);
  const path = join(folder, `lock-${last + 1}`);
  const draft = join(folder, `lock-draft-${process.pid}-${randomBytes(6).toString('hex')}`);
  try {
    await writeFile(draft, JSON.stringify(me));
    await link(draft, path);
  } catch (error) {
    if ((error as { code?: string }).code === 'EEXIST') throw locked(folder, path, 'another store was opened at the same moment');
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
  for (const number of numbers) await rm(join(folder, `lock-${number}`), { force: true });
  await removeDrafts(folder);
  return async () => {
    await writeFile(path, JSON.stringify({ ...me, released: true })).catch(() => unmarked.add(resolve(path)));
  };
}

async function lockNumbers(folder: string): Promise<number[]> {
  return (await readdir(folder)).flatMap((name) => LOCK.exec(name)?.[1] ?? []).map(Number);
}

async function checkGone(folder: string, number: number): Promise<void> {
  const path = join(folder, `lock-${number}`);
  let holder: Holder;
  try {
    holder = JSON.parse(await readFile(path, 'utf8'));
  } catch {
    // Written by nobody who follows the rules, torn by a crash of the machine, or just replaced by a higher one.
    if ((await lockNumbers(folder)).some((other) => other > number))
      throw locked(folder, path, 'another store was opened at the same moment');
    return;
  }
  if (holder.released === true || (holder.pid === process.pid && unmarked.has(resolve(path)))) return;
  if (holder.host !== hostname())
    throw locked(
      folder,
      path,
      `it is held on ${holder.host}, which cannot be asked from here whether process ${holder.pid} runs`,
    );
  if (isRunning(holder.pid) && (holder.birth === '' || holder.birth === (await birthOf(holder.pid))))
    throw locked(folder, path, `process ${holder.pid} has it`);
}

function locked(folder: string, path: string, why: string): ConnectorError {
  return new ConnectorError(
    'store-locked',
    `the folder ${folder} is that of another open store: ${why}; close that one, take another folder, or remove ${path} when nobody uses it`,
  );
}

/** Drafts of processes that ended in the middle of an attempt. */
async function removeDrafts(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const pid = /^lock-draft-(\d+)-[0-9a-f]+$/.exec(name)?.[1];
    if (pid !== undefined && !isRunning(Number(pid))) await rm(join(folder, name), { force: true });
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // It is there, and somebody else's.
    return (error as { code?: string }).code === 'EPERM';
  }
}

/** Boot of the machine and start of a process, where the system tells them as files; numbers of processes come again. */
async function birthOf(pid: number): Promise<string> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
    // The name in parentheses may hold anything; the start is field 22, the 20th behind it.
    const start = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
    return `${(await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim()} ${start}`;
  } catch {
    return '';
  }
}
