import { decodeHalf, encodeHalf } from '@bufferwise/adapter-kit';
import { HostPageDevice, type HostPoolMemory, type KvCache, KvCacheManager } from '@bufferwise/cache-manager';
import { checkInvariants } from '@bufferwise/cache-manager/testing';
import { defineCacheConfig, isLive, type LayerConfig, type LayerGroupId, type ReusePolicy } from '@bufferwise/core-policy';
import type { BufferForm, BufferForms } from '../transfer/transfer-layout.ts';

/** One layer of a stamped model: what it is, and how its pages are kept. */
export interface StampedLayer {
  readonly kind: 'full' | 'window' | 'state';
  readonly policy?: ReusePolicy;
  readonly windowSize?: number;
  readonly sinks?: number;
  /** Policy of the second buffer, `value`. Default that of the layer. */
  readonly valuePolicy?: ReusePolicy;
}

export interface StampedOptions {
  readonly layers: readonly StampedLayer[];
  readonly tokensPerBlock?: number;
  readonly dtype?: BufferForm['dtype'];
  readonly heads?: readonly [number, number];
  /** Pages that a block of keys is cut into. */
  readonly keyPages?: number;
  readonly reversed?: boolean;
  /** Bytes. Default 8 MiB. */
  readonly quota?: number;
  readonly debugChecks?: boolean;
}

const HEAD_SIZE = 2;
const STATE_BYTES = 32;

/**
 * A worker without a model: each number in its pages follows from the tokens up to it, and from layer, role and head. Numbers are whole and
 * below 2048, so they are the same as f16 and f32. What was never written, or was written for other tokens, shows.
 */
export class StampedWorker {
  readonly manager: KvCacheManager;
  readonly device = new HostPageDevice();
  readonly forms: BufferForms;
  readonly #layers: readonly LayerConfig[];
  readonly #heads: readonly [number, number];
  readonly #dtype: BufferForm['dtype'];

  constructor(options: StampedOptions) {
    const { layers, tokensPerBlock = 4, dtype = 'f32', heads = [0, 2], keyPages = 1, reversed = false } = options;
    this.#heads = heads;
    this.#dtype = dtype;
    const row = (heads[1] - heads[0]) * HEAD_SIZE * (dtype === 'f32' ? 4 : 2);
    const configs = layers.map((layer, layerId): LayerConfig => {
      const { kind, policy, valuePolicy, windowSize = 6, sinks = 0 } = layer;
      if (kind === 'state') {
        const buffers = [
          { role: 'ssm_state', size: STATE_BYTES },
          { role: 'conv_state', size: STATE_BYTES / 2 },
        ];
        return { type: 'ssm', layerId, reusePolicy: policy, buffers: reversed ? buffers.reverse() : buffers };
      }
      const key = { role: 'key', size: (tokensPerBlock / keyPages) * row, tokensPerBlockOverride: tokensPerBlock / keyPages };
      const value = { role: 'value', size: tokensPerBlock * row, reusePolicy: valuePolicy };
      const buffers = reversed ? [value, key] : [key, value];
      const window = kind === 'window' ? { slidingWindowSize: windowSize, numSinkTokens: sinks } : {};
      return { type: 'attention', layerId, reusePolicy: policy, buffers, ...window };
    });
    this.#layers = reversed ? configs.reverse() : configs;
    const tiers = [{ tier: 'device', quota: options.quota ?? 8 << 20 }] as const;
    const config = defineCacheConfig({ tokensPerBlock, layers: this.#layers, tiers });
    this.manager = new KvCacheManager({ config, device: this.device, debugChecks: options.debugChecks ?? true });
    const kinds = new Map(this.#layers.map(({ layerId, type }) => [layerId, type]));
    this.forms = (layerId) => (kinds.get(layerId) === 'attention' ? { dtype, heads, headSize: HEAD_SIZE } : undefined);
  }

  /** Opens a request on tokens and takes it onto the device with all that is there; null when there is no room. */
  async open(tokens: readonly number[]): Promise<KvCache | null> {
    const cache = this.manager.createKvCache({ tokens: Uint32Array.from(tokens) });
    const optional = cache.reuseStatus.filter(({ policy }) => policy === 'optional');
    const named = (complete: boolean) => optional.filter((each) => each.complete === complete).map(({ groupId }) => groupId);
    if (await cache.resume({ optionalReuseGroups: named(true), rebuiltGroups: named(false) })) {
      // What was not reused of the match is computed again.
      this.write(cache, tokens, 0, cache.numCommittedTokens);
      return cache;
    }
    cache.close();
    return null;
  }

  /** Computes tokens `[from, to)` and commits them. @returns false when there is no room */
  step(cache: KvCache, tokens: readonly number[], from: number, to: number): boolean {
    if (!cache.resize(to, from)) return false;
    this.write(cache, tokens, from, to);
    cache.commit(tokens.slice(from, to), { snapshot: true });
    return true;
  }

  /** One request that computes tokens up to each count and closes: what it leaves is there for others. */
  async leave(tokens: readonly number[], counts: readonly number[]): Promise<void> {
    const cache = await this.open(tokens);
    if (cache === null) return;
    for (const end of [...counts.filter((count) => count < tokens.length), tokens.length])
      if (end > cache.historyLength && !this.step(cache, tokens, cache.historyLength, end)) break;
    cache.close();
  }

  /** Writes the numbers of tokens `[from, to)` wherever there is a page for them, and the state behind them. */
  write(cache: KvCache, tokens: readonly number[], from: number, to: number): void {
    this.#visit(cache, tokens, from, to, (view, at, number) => {
      if (this.#numberIsHalf(view)) view.data.setUint16(at, encodeHalf(number), true);
      else view.data.setFloat32(at, number, true);
    });
  }

  /** What is wrong with the pages of a request behind so many tokens; nothing when all that later tokens read is there. */
  faults(cache: KvCache, tokens: readonly number[]): string[] {
    const found: string[] = [];
    this.#visit(cache, tokens, 0, tokens.length, (view, at, number, name) => {
      const is = this.#numberIsHalf(view) ? decodeHalf(view.data.getUint16(at, true)) : view.data.getFloat32(at, true);
      if (is !== number) found.push(`${name} is ${is} instead of ${number}`);
    });
    return found;
  }

  /** What is wrong with what was published for a sequence, looked up at every length. */
  async publishedFaults(tokens: readonly number[]): Promise<string[]> {
    const found: string[] = [];
    for (let length = 1; length <= tokens.length; length++) {
      const cache = this.manager.createKvCache({ tokens: Uint32Array.from(tokens.slice(0, length)) });
      const optional = cache.reuseStatus.filter(({ policy, complete }) => policy === 'optional' && complete);
      if (await cache.resume({ optionalReuseGroups: optional.map(({ groupId }) => groupId) })) {
        const matched = tokens.slice(0, cache.numCommittedTokens);
        const reused = new Set(cache.reuseStatus.filter(({ complete }) => complete).map(({ groupId }) => groupId));
        this.#visit(cache, matched, 0, matched.length, (view, at, number, name, groupId) => {
          if (!reused.has(groupId)) return;
          const is = this.#numberIsHalf(view) ? decodeHalf(view.data.getUint16(at, true)) : view.data.getFloat32(at, true);
          if (is !== number) found.push(`published for ${length} tokens: ${name} is ${is} instead of ${number}`);
        });
      }
      cache.close();
    }
    return found;
  }

  /** Nothing is held any more: what is not free can be evicted. */
  leaks(): string[] {
    checkInvariants(this.manager);
    const { openRequests } = this.manager.statistics();
    const held = this.manager.storageStatistics(0).filter(({ free, evictable, total }) => free + evictable !== total);
    return [
      ...(openRequests === 0 ? [] : [`${openRequests} requests are open`]),
      ...held.map(({ free, evictable, total }) => `${total - free - evictable} of ${total} slots are held`),
    ];
  }

  #numberIsHalf({ isState }: { isState: boolean }): boolean {
    return !isState && this.#dtype === 'f16';
  }

  #visit(
    cache: KvCache,
    tokens: readonly number[],
    from: number,
    to: number,
    visit: (view: { data: DataView; isState: boolean }, at: number, number: number, name: string, groupId: LayerGroupId) => void,
  ): void {
    const prefix = prefixHashes(tokens);
    const { layout, lifecycles } = this.manager;
    const { tokensPerBlock } = layout;
    const [firstHead, endHead] = this.#heads;
    for (const { layerId, buffers } of this.#layers) {
      for (const { role } of buffers) {
        const groupId = this.manager.getBufferGroupId(layerId, role);
        const memory = this.manager.poolMemory(layerId, role) as HostPoolMemory;
        const { offset, size } = layout.bufferAttr(layerId, role);
        const data = new DataView(memory.bytes.buffer, memory.bytes.byteOffset);
        const seed = hashed(layerId * 31 + role.length * 7, role.charCodeAt(0));
        const lifecycle = lifecycles.get(groupId);
        if (lifecycle.kind === 'ssm') {
          const base = cache.ssmBlockBaseIndex(groupId) * memory.spec.slotBytes + offset;
          if (to === 0) continue;
          for (let at = 0; at < size; at += 4)
            visit(
              { data, isState: true },
              base + at,
              numberOf(prefix[to], seed, at),
              `layer ${layerId} ${role} at ${at}`,
              groupId,
            );
          continue;
        }
        const indices = cache.basePageIndices(groupId);
        const row = size / tokensPerBlock;
        const bytes = row / ((endHead - firstHead) * HEAD_SIZE);
        for (let token = from; token < to; token++) {
          const block = Math.floor(token / tokensPerBlock);
          if (!(indices[block] >= 0)) {
            // The step may not be done: what is out of the window then needs no page.
            if (isLive(lifecycle, block, to, tokensPerBlock) && cache.historyLength >= to)
              throw new Error(`layer ${layerId} ${role}: block ${block} has no page`);
            continue;
          }
          const base = indices[block] * memory.spec.slotBytes + offset + (token % tokensPerBlock) * row;
          for (let head = firstHead; head < endHead; head++)
            for (let i = 0; i < HEAD_SIZE; i++)
              visit(
                { data, isState: false },
                base + ((head - firstHead) * HEAD_SIZE + i) * bytes,
                numberOf(prefix[token + 1], seed, head * HEAD_SIZE + i),
                `layer ${layerId} ${role}, token ${token}, head ${head}`,
                groupId,
              );
        }
      }
    }
  }
}

function prefixHashes(tokens: readonly number[]): number[] {
  const prefix = [17];
  for (const token of tokens) prefix.push(hashed(prefix[prefix.length - 1], token + 1));
  return prefix;
}

function numberOf(prefix: number, seed: number, at: number): number {
  return 1 + (hashed(hashed(prefix, seed), at + 1) % 2047);
}

function hashed(a: number, b: number): number {
  let mixed = Math.imul(a ^ (b + 0x9e3779b9), 0x85ebca6b);
  mixed ^= mixed >>> 13;
  mixed = Math.imul(mixed, 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}
