import type { PageCommand, PageDevice, PoolMemory, PoolSpec } from '../../src/index.ts';

/** A device whose pools hold no bytes: what is left of a manager on it is its bookkeeping. Counts the copies it was asked for. */
export class NullPageDevice implements PageDevice {
  copiedSlots = 0;

  createPool(spec: PoolSpec): PoolMemory {
    return { spec, ready: Promise.resolve(), destroy: () => {} };
  }

  execute(commands: readonly PageCommand[]): void {
    for (const command of commands) if (command.kind === 'copy') this.copiedSlots += command.count;
  }

  async readSlots(): Promise<void> {}

  writeSlots(): void {}

  async landed(): Promise<void> {}
}
