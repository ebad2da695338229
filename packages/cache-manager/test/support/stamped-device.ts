import type { PageCommand, PoolSpec } from '../../src/index.ts';
import { HostPageDevice, type HostPoolMemory } from '../../src/index.ts';

/** What recycled memory looks like before anybody wrote to it: NaN, read as a float of any width. */
const DIRT = 0xff;

/** A host device that remembers its pools in order of creation and fills them with dirt, so that nothing is zero by luck. */
export class StampedDevice extends HostPageDevice {
  readonly pools: HostPoolMemory[] = [];
  /** Calls of `execute`. */
  submissions = 0;
  /** Bytes of all slots that were copied. */
  copiedBytes = 0;

  override createPool(spec: PoolSpec): HostPoolMemory {
    const pool = super.createPool(spec);
    pool.bytes.fill(DIRT);
    this.pools.push(pool);
    return pool;
  }

  override execute(commands: readonly PageCommand[]): void {
    this.submissions++;
    super.execute(commands);
    for (const command of commands) {
      // Carrying pages to larger or smaller pools is no copy of them.
      if (command.kind !== 'copy' || command.targetPools !== undefined) continue;
      for (const { spec } of command.pools) this.copiedBytes += command.count * spec.slotBytes;
    }
  }
}
