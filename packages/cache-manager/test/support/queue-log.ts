import type { PageCommand, PoolMemory } from '../../src/index.ts';
import { StampedDevice } from './stamped-device.ts';

/** A device that notes in which order it was handed what, as a queue would run it; reads end when they are told to. */
export class QueueLog extends StampedDevice {
  readonly entries: string[] = [];
  readonly #reads: (() => void)[] = [];
  /** Whether reads wait for `landReads`. */
  holdsReads = false;
  /** Whether reads do not come back. */
  failsReads = false;

  /** Notes something that is not the manager's: a kernel of the engine. */
  note(entry: string): void {
    this.entries.push(entry);
  }

  /** Lets the reads that wait come back. */
  async landReads(): Promise<void> {
    for (const land of this.#reads.splice(0)) land();
    for (let i = 0; i < 20; i++) await Promise.resolve();
  }

  override execute(commands: readonly PageCommand[]): void {
    for (const { kind, count } of commands) this.note(`${kind} ${count}`);
    super.execute(commands);
  }

  override async readSlots(pool: PoolMemory, slots: Int32Array, target: Uint8Array): Promise<void> {
    this.note(`read ${slots.length}`);
    // The bytes are those of now, but nobody sees them before the read has come back.
    const bytes = new Uint8Array(target.length);
    const copied = super.readSlots(pool, slots, bytes);
    if (this.holdsReads) await new Promise<void>((resolve) => this.#reads.push(resolve));
    await copied;
    if (this.failsReads) throw new Error('the device is gone');
    target.set(bytes);
  }
}
