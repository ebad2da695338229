import type { PageCommand, PageDevice, PoolMemory, PoolSpec } from '@bufferwise/cache-manager';

/** A device whose pools hold no bytes: a replay asks who holds which page, not what is in it. */
export class NullPageDevice implements PageDevice {
  createPool(spec: PoolSpec): PoolMemory {
    return { spec, ready: Promise.resolve(), destroy: () => {} };
  }

  execute(_commands: readonly PageCommand[]): void {}

  async readSlots(): Promise<void> {}

  writeSlots(): void {}

  async landed(): Promise<void> {}
}
