import { vi } from 'vitest';
import {
  type HostPoolMemory,
  MemoryTierStore,
  type PageCommand,
  type PoolMemory,
  type PoolSpec,
  type TierStore,
} from '../../src/index.ts';
import { HostMemory } from '../../src/tiers/host-memory.ts';
import { StampedDevice } from './stamped-device.ts';

/** Everything outside the manager that can fail under it. */
export const CALLS = [
  'createPool',
  'ready',
  'execute',
  'read',
  'write',
  'landed',
  'put',
  'get',
  'damage',
  'delete',
  'list',
  'reserve',
] as const;
export type Call = (typeof CALLS)[number];

/** What fails on purpose. */
export class Sabotage extends Error {
  override readonly name = 'Sabotage';
}

/** Makes one call of one kind fail, number `at` from 1 on, counted from when it is armed. */
export class Saboteur {
  readonly #kind: Call;
  readonly #at: number;
  #armed = false;
  #calls = 0;

  constructor(kind: Call, at: number) {
    this.#kind = kind;
    this.#at = at;
  }

  /** Whether the call that had to fail was made. */
  get hasStruck(): boolean {
    return this.#calls >= this.#at;
  }

  arm(): void {
    this.#armed = true;
  }

  strikes(kind: Call): boolean {
    return this.#armed && kind === this.#kind && ++this.#calls === this.#at;
  }

  check(kind: Call): void {
    if (this.strikes(kind)) throw new Sabotage(`${kind} number ${this.#at}`);
  }

  /**
   * Host memory that cannot be had when it is told so, for every manager, until the result is called. What was had once stays:
   * only what needs more than that can fail.
   */
  watchHostMemory(): () => void {
    const { reserve, trim } = HostMemory.prototype;
    const granted = new WeakMap<HostMemory, Map<number, number>>();
    const grantsOf = (memory: HostMemory) => {
      const grants = granted.get(memory) ?? new Map<number, number>();
      granted.set(memory, grants);
      return grants;
    };
    const strikes = () => this.strikes('reserve');
    const spies = [
      vi.spyOn(HostMemory.prototype, 'reserve').mockImplementation(function (this: HostMemory, group, numSlots) {
        const grants = grantsOf(this);
        if (numSlots <= (grants.get(group) ?? 0)) return true;
        if (strikes()) return false;
        grants.set(group, numSlots);
        return reserve.call(this, group, numSlots);
      }),
      vi.spyOn(HostMemory.prototype, 'trim').mockImplementation(function (this: HostMemory, group, numSlots) {
        const grants = grantsOf(this);
        grants.set(group, Math.min(numSlots, grants.get(group) ?? 0));
        trim.call(this, group, numSlots);
      }),
    ];
    return () => {
      for (const spy of spies) spy.mockRestore();
    };
  }
}

/** A device whose calls fail as a saboteur says. A call that fails has no effect; a read that fails leaves rubbish. */
export class SabotagedDevice extends StampedDevice {
  readonly #saboteur: Saboteur;

  constructor(saboteur: Saboteur) {
    super();
    this.#saboteur = saboteur;
  }

  override createPool(spec: PoolSpec): HostPoolMemory {
    this.#saboteur.check('createPool');
    const pool = super.createPool(spec);
    if (this.#saboteur.strikes('ready')) Object.assign(pool, { ready: Promise.reject(new Sabotage('no such memory')) });
    return pool;
  }

  override execute(commands: readonly PageCommand[]): void {
    this.#saboteur.check('execute');
    super.execute(commands);
  }

  override async readSlots(pool: PoolMemory, slots: Int32Array, target: Uint8Array): Promise<void> {
    if (this.#saboteur.strikes('read')) {
      target.fill(0xee);
      throw new Sabotage('the bytes did not come back');
    }
    await super.readSlots(pool, slots, target);
  }

  override writeSlots(pool: PoolMemory, slots: Int32Array, source: Uint8Array): void {
    this.#saboteur.check('write');
    super.writeSlots(pool, slots, source);
  }

  override async landed(): Promise<void> {
    this.#saboteur.check('landed');
    await super.landed();
  }
}

/** A store whose calls fail as a saboteur says, or whose values come back damaged. */
export class SabotagedStore implements TierStore {
  readonly inner = new MemoryTierStore();
  readonly #saboteur: Saboteur;

  constructor(saboteur: Saboteur) {
    this.#saboteur = saboteur;
  }

  async put(key: string, bytes: Uint8Array): Promise<void> {
    this.#saboteur.check('put');
    await this.inner.put(key, bytes);
  }

  async get(key: string): Promise<Uint8Array | undefined> {
    this.#saboteur.check('get');
    const bytes = await this.inner.get(key);
    if (bytes !== undefined && this.#saboteur.strikes('damage')) bytes[bytes.length >> 1] ^= 4;
    return bytes;
  }

  async delete(key: string): Promise<void> {
    this.#saboteur.check('delete');
    await this.inner.delete(key);
  }

  async list(): Promise<readonly string[]> {
    this.#saboteur.check('list');
    return this.inner.list();
  }

  async close(): Promise<void> {
    await this.inner.close();
  }
}
