import type { PoolMemory, TierStore } from '../../src/index.ts';
import { StampedDevice } from './stamped-device.ts';

/** Which calls fail: told their number, from 1 on, each time one is made. */
export type Fails = (call: number) => boolean;

export class Broken extends Error {}

/** A device whose reads fail when told to. What it had copied by then is never seen. */
export class UnreadableDevice extends StampedDevice {
  readonly #fails: Fails;
  numReads = 0;

  constructor(fails: Fails) {
    super();
    this.#fails = fails;
  }

  override async readSlots(pool: PoolMemory, slots: Int32Array, target: Uint8Array): Promise<void> {
    if (this.#fails(++this.numReads)) {
      target.fill(0xee);
      throw new Broken('the bytes did not come back');
    }
    await super.readSlots(pool, slots, target);
  }
}

/** A store around another one: its calls fail, and its values come back damaged, when told to. */
export class FailingStore implements TierStore {
  readonly inner: TierStore;
  readonly #fails: { put?: Fails; get?: Fails; damage?: Fails; delete?: Fails };
  numPuts = 0;
  numGets = 0;
  numDeletes = 0;

  constructor(inner: TierStore, fails: { put?: Fails; get?: Fails; damage?: Fails; delete?: Fails }) {
    this.inner = inner;
    this.#fails = fails;
  }

  async put(key: string, bytes: Uint8Array): Promise<void> {
    if (this.#fails.put?.(++this.numPuts)) throw new Broken(`no room for ${key}`);
    await this.inner.put(key, bytes);
  }

  async get(key: string): Promise<Uint8Array | undefined> {
    const call = ++this.numGets;
    if (this.#fails.get?.(call)) throw new Broken(`cannot read ${key}`);
    const bytes = await this.inner.get(key);
    if (bytes === undefined || !this.#fails.damage?.(call)) return bytes;
    if (call % 3 === 0) return undefined;
    if (call % 3 === 1) return bytes.subarray(1);
    bytes[call % bytes.length] ^= 1 << (call % 8);
    return bytes;
  }

  async delete(key: string): Promise<void> {
    if (this.#fails.delete?.(++this.numDeletes)) throw new Broken(`cannot delete ${key}`);
    await this.inner.delete(key);
  }

  async list(): Promise<readonly string[]> {
    return this.inner.list();
  }

  async close(): Promise<void> {
    await this.inner.close();
  }
}
