import { BufferwiseError } from '@bufferwise/core-policy';
import type { PageCommand, PageDevice, PoolMemory, PoolSpec } from '../ports/page-device.ts';

/** Pool memory in a plain ArrayBuffer. */
export class HostPoolMemory implements PoolMemory {
  readonly spec: PoolSpec;
  readonly ready: Promise<void> = Promise.resolve();
  /** All slots, one after the other: `numSlots * slotBytes` bytes; empty once destroyed. */
  bytes: Uint8Array;

  constructor(spec: PoolSpec) {
    this.spec = spec;
    try {
      this.bytes = new Uint8Array(spec.slotBytes * spec.numSlots);
    } catch (cause) {
      const message = `${spec.label}: ${spec.numSlots} slots of ${spec.slotBytes} bytes exceed what this process can allocate; lower the quota of the tier`;
      throw new BufferwiseError('pool-too-large', message, { cause });
    }
  }

  destroy(): void {
    this.bytes = new Uint8Array(0);
  }
}

/**
 * A page device in this process's memory: the reference for every other one, and all that engines without a GPU need.
 * Commands take effect before the call returns.
 */
export class HostPageDevice implements PageDevice {
  /** @throws {BufferwiseError} `pool-too-large` when the process cannot have the memory */
  createPool(spec: PoolSpec): HostPoolMemory {
    return new HostPoolMemory(spec);
  }

  execute(commands: readonly PageCommand[]): void {
    for (const command of commands) {
      command.pools.forEach((pool, index) => {
        const { bytes, spec } = pool as HostPoolMemory;
        const targetPool = command.kind === 'copy' ? (command.targetPools?.[index] ?? pool) : pool;
        const target = (targetPool as HostPoolMemory).bytes;
        for (let i = 0; i < command.count; i++) {
          if (command.kind === 'clear') {
            const start = command.slots[i] * spec.slotBytes;
            bytes.fill(0, start, start + spec.slotBytes);
          } else {
            const start = command.sources[i] * spec.slotBytes;
            target.set(bytes.subarray(start, start + spec.slotBytes), command.targets[i] * spec.slotBytes);
          }
        }
      });
    }
  }

  async readSlots(pool: PoolMemory, slots: Int32Array, target: Uint8Array): Promise<void> {
    const { bytes, spec } = pool as HostPoolMemory;
    slots.forEach((slot, i) => {
      target.set(bytes.subarray(slot * spec.slotBytes, (slot + 1) * spec.slotBytes), i * spec.slotBytes);
    });
  }

  writeSlots(pool: PoolMemory, slots: Int32Array, source: Uint8Array): void {
    const { bytes, spec } = pool as HostPoolMemory;
    slots.forEach((slot, i) => {
      bytes.set(source.subarray(i * spec.slotBytes, (i + 1) * spec.slotBytes), slot * spec.slotBytes);
    });
  }

  async landed(): Promise<void> {}
}
