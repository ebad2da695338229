import type { LayerGroupId } from '@bufferwise/core-policy';
import type { PageIndexConverter } from '@bufferwise/scratch-allocator';
import type { HostPoolMemory, KvCache, KvCacheManager } from '../../src/index.ts';
import { type Stamp, scopeStamp, withText } from './stamp.ts';

const STAMP_BYTES = 8;

/** One buffer of a layer as a kernel sees it: where a token's bytes are, given a request's tables. */
export class PageBuffer {
  readonly group: LayerGroupId;
  readonly name: string;
  /** Stamp of the buffer itself: group, layer and role. */
  readonly identity: Stamp;
  readonly #memory: () => HostPoolMemory;
  #bytes: Uint8Array = new Uint8Array(0);
  #view: DataView = new DataView(this.#bytes.buffer);
  readonly #converter: PageIndexConverter;
  readonly #tokensPerBlock: number;
  /** Bytes from one page index to the next. */
  readonly #stride: number;

  constructor(manager: KvCacheManager, layerId: number, role: string) {
    const { layout } = manager;
    this.group = manager.getBufferGroupId(layerId, role);
    this.name = `group ${this.group}, layer ${layerId} ${role}`;
    this.identity = withText(scopeStamp(undefined), this.name);
    this.#memory = () => manager.poolMemory(layerId, role) as HostPoolMemory;
    this.#converter = layout.pageIndexConverter(layerId, role);
    this.#tokensPerBlock = layout.tokensPerBlock;
    this.#stride = layout.pageStride(layerId, role);
  }

  /** Page indices of an attention buffer for the present step, `expansion` of them a block. */
  table(kv: KvCache, beam = 0): Int32Array {
    return this.#converter.convert(kv.basePageIndices(this.group, beam), {
      indexMode: 'per_layer',
      scratch: kv.scratch(this.group),
    });
  }

  /** Page index of recurrent state, -1 while the request is not active. */
  statePage(kv: KvCache, beam = 0): number {
    const base = kv.ssmBlockBaseIndex(this.group, beam);
    return base < 0 ? -1 : this.#converter.convert(Int32Array.of(base), { indexMode: 'per_layer' })[0];
  }

  hasPage(table: Int32Array, token: number): boolean {
    return this.#address(table, token) >= 0;
  }

  /** The pool as it is now: a manager that resizes a tier, or gets another device, has another one. */
  get #words(): DataView {
    const { bytes } = this.#memory();
    if (bytes !== this.#bytes) {
      this.#bytes = bytes;
      this.#view = new DataView(bytes.buffer);
    }
    return this.#view;
  }

  write(table: Int32Array, token: number, stamp: Stamp): void {
    const address = this.#checkedAddress(table, token);
    this.#words.setUint32(address, stamp.low, true);
    this.#words.setUint32(address + 4, stamp.high, true);
  }

  /** @throws {Error} when the page holds anything but the stamp */
  expect(table: Int32Array, token: number, stamp: Stamp, what: string): void {
    const address = this.#checkedAddress(table, token);
    if (this.#words.getUint32(address, true) === stamp.low && this.#words.getUint32(address + 4, true) === stamp.high) return;
    throw new Error(`${this.name}: ${what} holds something else than it should`);
  }

  writeState(page: number, stamp: Stamp): void {
    this.#words.setUint32(page * this.#stride, stamp.low, true);
    this.#words.setUint32(page * this.#stride + 4, stamp.high, true);
  }

  expectState(page: number, stamp: Stamp, what: string): void {
    const low = this.#words.getUint32(page * this.#stride, true);
    const high = this.#words.getUint32(page * this.#stride + 4, true);
    if (low !== stamp.low || high !== stamp.high)
      throw new Error(`${this.name}: ${what} is not the state that slot ${page} holds`);
  }

  expectZeroState(page: number): void {
    for (let at = page * this.#stride; at < (page + 1) * this.#stride; at += 4) {
      if (this.#words.getUint32(at) !== 0) throw new Error(`${this.name}: fresh state on page ${page} is not zero`);
    }
  }

  #checkedAddress(table: Int32Array, token: number): number {
    const address = this.#address(table, token);
    if (address < 0)
      throw new Error(`${this.name}: token ${token} (block ${Math.floor(token / this.#tokensPerBlock)}) has no page`);
    return address;
  }

  #address(table: Int32Array, token: number): number {
    const { expansion } = this.#converter;
    const tokensPerPage = this.#tokensPerBlock / expansion;
    const page = table[Math.floor(token / tokensPerPage)];
    if (page === undefined || page < 0) return -1;
    const tokenBytes = Math.max(STAMP_BYTES, Math.floor(this.#stride / tokensPerPage / STAMP_BYTES) * STAMP_BYTES);
    return page * this.#stride + (token % tokensPerPage) * tokenBytes;
  }
}

/** The buffers of each layer that has any, in the order in which a model runs through them. */
export function layersOf(
  manager: KvCacheManager,
  layers: readonly { layerId: number; buffers: readonly { role: string }[] }[],
): PageBuffer[][] {
  return layers.map(({ layerId, buffers }) => buffers.map(({ role }) => new PageBuffer(manager, layerId, role)));
}
