import type { HostPoolMemory, PageCommand, PoolSpec } from '../../src/index.ts';
import { StampedDevice } from './stamped-device.ts';

/** What a device may fail at: to make a pool, to take commands, or, later, to have the memory of a pool. */
export type Fault = 'createPool' | 'execute' | 'ready';

/** What a device throws that fails on purpose. */
export class DeviceFault extends Error {
  override readonly name = 'DeviceFault';
}

/** A device that fails once: at call number `failAt` of one kind, counted from 1; 0 for never. A refused call has no effect. */
export class FaultyDevice extends StampedDevice {
  readonly #fault: Fault;
  #failAt: number;
  #calls = 0;

  constructor(fault: Fault, failAt: number) {
    super();
    this.#fault = fault;
    this.#failAt = failAt;
  }

  /** Whether the call that had to fail was made. */
  get hasFailed(): boolean {
    return this.#failAt > 0 && this.#calls >= this.#failAt;
  }

  /** Makes the next call fail. */
  failNext(): void {
    this.#failAt = this.#calls + 1;
  }

  override createPool(spec: PoolSpec): HostPoolMemory {
    if (this.#isDue('createPool')) throw new DeviceFault(`no ${spec.label}`);
    const pool = super.createPool(spec);
    if (this.#isDue('ready')) Object.assign(pool, { ready: Promise.reject(new DeviceFault(`no memory for ${spec.label}`)) });
    return pool;
  }

  override execute(commands: readonly PageCommand[]): void {
    if (this.#isDue('execute')) throw new DeviceFault('no commands today');
    super.execute(commands);
  }

  #isDue(fault: Fault): boolean {
    return fault === this.#fault && ++this.#calls === this.#failAt;
  }
}
