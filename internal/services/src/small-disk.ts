import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmdirSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const BALLAST = 'ballast';
/** Small enough to fill what is left to the last page of memory. */
const PIECE = Buffer.alloc(1024, 1);

/** A disk of a few kilobytes in memory: one that is really full, and really read-only. */
export class SmallDisk {
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  /** Whether this process may mount one: on Linux, with the rights for it. */
  static isPossible(): boolean {
    try {
      SmallDisk.mount(64 * 1024).unmount();
      return true;
    } catch {
      return false;
    }
  }

  static mount(bytes: number): SmallDisk {
    const folder = mkdtempSync(join(tmpdir(), 'bufferwise-disk-'));
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes}`, 'tmpfs', folder], { stdio: 'ignore' });
    } catch (error) {
      rmdirSync(folder);
      throw error;
    }
    return new SmallDisk(folder);
  }

  /** Takes all the room that is left. */
  fill(): void {
    const file = openSync(join(this.folder, BALLAST), 'a');
    try {
      for (;;) writeSync(file, PIECE);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    } finally {
      closeSync(file);
    }
  }

  /** Gives that room back. */
  clear(): void {
    rmSync(join(this.folder, BALLAST), { force: true });
  }

  setReadOnly(isReadOnly: boolean): void {
    execFileSync('mount', ['-o', `remount,${isReadOnly ? 'ro' : 'rw'}`, this.folder], { stdio: 'ignore' });
  }

  unmount(): void {
    execFileSync('umount', [this.folder], { stdio: 'ignore' });
    rmdirSync(this.folder);
  }
}
