import {
  type CacheConfig,
  type CacheConfigInput,
  defineCacheConfig,
  type LayerConfig,
  type LifecycleId,
  LifecycleRegistry,
  type ReusePolicy,
} from '@bufferwise/core-policy';
import { expect } from 'vitest';
import { KvCacheManager, type KvCacheManagerOptions, MemoryTierStore, type ReuseScope, type TierStore } from '../../src/index.ts';
import { checkInvariants, dropPage } from '../../src/testing/index.ts';
import { EventMirror } from './event-mirror.ts';
import { layersOf, type PageBuffer } from './page-buffers.ts';
import { markStamp, Player, type PlayerOptions } from './player.ts';
import type { Stamp, Token } from './stamp.ts';
import { StampedDevice } from './stamped-device.ts';

/** What the model of a test asks of a group. */
export interface GroupRole {
  readonly kind: 'attention' | 'ssm';
  readonly policy: ReusePolicy;
  readonly windowSize: number | null;
  readonly sinkBlocks: number;
}

/** The groups of a config; index = group id. */
export function groupRoles(config: CacheConfig): GroupRole[] {
  const lifecycles = LifecycleRegistry.fromConfig(config);
  return Array.from({ length: lifecycles.size }, (_, id) => {
    const lifecycle = lifecycles.get(id as LifecycleId);
    const { kind, policy } = lifecycle;
    if (lifecycle.kind === 'ssm') return { kind, policy, windowSize: null, sinkBlocks: 0 };
    return { kind, policy, windowSize: lifecycle.windowSize, sinkBlocks: lifecycle.numSinkBlocks };
  });
}

/** A manager on a stamped device, with invariants checked after every call, and the players that use it. */
export class Stage {
  readonly config: CacheConfig;
  /** The device at first. */
  readonly device: StampedDevice;
  readonly disk: TierStore;
  readonly manager: KvCacheManager;
  /** Follows the manager by its events, partial blocks included. */
  readonly mirror = new EventMirror(true);
  readonly groups: readonly GroupRole[];
  readonly layers: readonly (readonly PageBuffer[])[];
  readonly #players: Player[] = [];
  /** Devices that came later. */
  readonly #devices: StampedDevice[] = [];
  #marks = 0;

  constructor(
    input: CacheConfigInput,
    device = new StampedDevice(),
    {
      disk = new MemoryTierStore(),
      ...options
    }: Partial<Pick<KvCacheManagerOptions, 'disk' | 'stagingBytes' | 'eviction' | 'maxPinnedShare' | 'now'>> = {},
  ) {
    this.config = defineCacheConfig(input);
    this.device = device;
    this.disk = disk;
    this.manager = new KvCacheManager({
      config: this.config,
      device: this.device,
      disk,
      events: this.mirror,
      debugChecks: true,
      ...options,
    });
    this.groups = groupRoles(this.config);
    this.layers = layersOf(this.manager, this.config.layers);
  }

  /** Opens a request on a prompt. */
  open(prompt: readonly Token[] = [], options?: PlayerOptions): Player {
    const player = Player.open(this, prompt, options);
    this.join(player);
    return player;
  }

  /** Takes a player in who came another way, to be closed with the others. */
  join(player: Player): void {
    this.#players.push(player);
  }

  /** Opens a request and resumes it, which must succeed. */
  async start(
    prompt: readonly Token[] = [],
    options: PlayerOptions & { select?: number[]; rebuild?: number[] } = {},
  ): Promise<Player> {
    const { select, rebuild, ...rest } = options;
    const player = this.open(prompt, rest);
    expect(await player.resume({ optionalReuseGroups: select as LifecycleId[], rebuiltGroups: rebuild as LifecycleId[] })).toBe(
      true,
    );
    return player;
  }

  /** One request, created without tokens, that computes and commits up to each count in turn, then closes. */
  async donate(
    tokens: readonly Token[],
    counts: readonly number[],
    options: PlayerOptions & { end?: boolean } = {},
  ): Promise<void> {
    const { end, ...rest } = options;
    const donor = await this.start([], rest);
    for (const count of counts) {
      expect(donor.extend(tokens.slice(donor.numComputed, count), { end: end && count === counts[counts.length - 1] })).toBe(
        true,
      );
    }
    donor.close();
  }

  probe(tokens: readonly Token[], scope?: ReuseScope): number {
    return this.manager.probeReuse(tokens, scope);
  }

  /** Takes the page of a block out of the tree, as eviction would; it must be there. */
  drop(groupId: number, tokens: readonly Token[], block: number, scope?: ReuseScope): void {
    expect(dropPage(this.manager, { tokens, block, groupId, scope }), `group ${groupId} block ${block} is published`).toBe(true);
  }

  /** Takes the snapshot after exactly all of `tokens` out of the tree; it must be there. */
  dropSnapshot(groupId: number, tokens: readonly Token[]): void {
    this.drop(groupId, tokens, Math.ceil(tokens.length / this.config.tokensPerBlock) - 1);
  }

  /** Which of the first `numBlocks` blocks of a sequence list a page of a group; takes those pages out. */
  pagesOf(groupId: number, tokens: readonly Token[], scope?: ReuseScope): number[] {
    const numBlocks = Math.ceil(tokens.length / this.config.tokensPerBlock);
    const found: number[] = [];
    // From the tail on, because losing a page may take the blocks behind it along.
    for (let block = numBlocks - 1; block >= 0; block--)
      if (dropPage(this.manager, { tokens, block, groupId, scope })) found.unshift(block);
    return found;
  }

  /** Free and evictable slots of a group's pool group in a tier, and all it has. */
  slots(groupId: number, tier = 0): { free: number; evictable: number; total: number } {
    const { layout } = this.manager;
    const poolGroup = tier === 0 ? layout.poolGroupOf(groupId as LifecycleId) : layout.coldPoolGroupOf(groupId as LifecycleId);
    const { free, evictable, total } = this.manager.storageStatistics(tier)[poolGroup];
    return { free, evictable, total };
  }

  /** Slots in use of a group's pool group, by tier. */
  used(groupId: number): number[] {
    return this.config.tiers.map((_, tier) => {
      const { free, total } = this.slots(groupId, tier);
      return total - free;
    });
  }

  /** Pages of a group that left the device for a colder tier, came back, were dropped from a colder tier, and were lost. */
  traffic(groupId: number): { offloaded: number; onboarded: number; dropped: number; lost: number } {
    const { counts, lostPages: lost } = this.manager.statistics().groups[groupId];
    return { offloaded: counts.offloadedPages, onboarded: counts.onboardedPages, dropped: counts.droppedPages, lost };
  }

  /** Closes what is open; then every slot of every tier must be free or evictable, and every invariant must hold. */
  async finish(): Promise<void> {
    for (const player of this.#players) player.close();
    checkInvariants(this.manager);
    // What was refused is the story's business.
    await this.manager.settled().catch(() => {});
    checkInvariants(this.manager);
    this.mirror.expectSame(this.manager);
    const counted = this.manager.statistics().groups.reduce((sum, { counts }) => sum + counts.copiedBytes, 0);
    expect(counted, 'bytes that statistics say were copied on the device').toBe(this.#copiedBytes());
    for (const tier of this.config.tiers.keys()) {
      for (const [poolGroup, { free, evictable, total }] of this.manager.storageStatistics(tier).entries()) {
        expect(free + evictable, `tier ${tier}, pool group ${poolGroup}: free and evictable once everything is closed`).toBe(
          total,
        );
      }
    }
    this.manager.clearReusableBlocks();
    checkInvariants(this.manager);
    expect(this.manager.statistics().blocks, 'blocks once everything is forgotten').toBe(0);
    for (const tier of this.config.tiers.keys())
      for (const { free, total } of this.manager.storageStatistics(tier)) expect(free).toBe(total);
    await this.manager.close();
    if (this.disk instanceof MemoryTierStore) expect(this.disk.storedBytes, 'bytes left on the disk').toBe(0);
  }

  /** Gives the manager another device, as after a loss. */
  async restoreDevice(device = new StampedDevice()): Promise<void> {
    this.#devices.push(device);
    await this.manager.restoreDevice(device);
  }

  #copiedBytes(): number {
    return [this.device, ...this.#devices].reduce((sum, { copiedBytes }) => sum + copiedBytes, 0);
  }

  /** A mark for content that is one request's own. */
  nextMark(): Stamp {
    return markStamp(this.#marks++);
  }
}

/** Device quotas are rounded up to this. */
export const GRAIN_BYTES = 2 << 20;

/** What `model` takes besides layers. */
export interface ModelOptions extends Partial<Omit<CacheConfigInput, 'layers' | 'tiers'>> {
  /** Slots of each group's pools, in the order of its first layer; one number for all. Default 512, then a few more. */
  slots?: number | readonly number[];
  /** Slots of each group in the host tier; left out: no such tier. */
  hostSlots?: number;
  /** Slots of each group in the disk tier, behind the others; left out: no such tier. */
  diskSlots?: number;
}

/** A layer without its buffers: `model` gives it one for each role. */
export type LayerShape = Omit<LayerConfig, 'layerId' | 'buffers'> & { roles?: readonly string[] };

/**
 * A config in which each buffer group has a pool group of its own with the slots that were asked for. Slots of different
 * groups differ in size by a few bytes, so that no two share pools. 4 tokens a block unless said.
 */
export function model(
  layers: readonly LayerShape[],
  { slots = 512, hostSlots, diskSlots, ...options }: ModelOptions = {},
): CacheConfigInput {
  const groups = [...new Set(layers.map(meaning))];
  // State gets two grains: with one, which is its minimum, it would have one slot whatever its size.
  const grains = groups.map((group) => (group.includes('"ssm"') ? 2 : 1));
  const slotBytesOf = (group: number) => (GRAIN_BYTES * grains[group]) / (typeof slots === 'number' ? slots : slots[group]);
  const coldQuota = (numSlots: number) => Math.floor(groups.reduce((sum, _, group) => sum + numSlots * slotBytesOf(group), 0));
  return {
    tokensPerBlock: 4,
    layers: layers.map(({ roles = ['kv'], ...layer }, layerId) => {
      const group = groups.indexOf(meaning(layers[layerId]));
      const members = layers.filter((other) => meaning(other) === groups[group]);
      const numBuffers = members.reduce((count, member) => count + (member.roles ?? ['kv']).length, 0);
      const size = Math.floor(slotBytesOf(group) / numBuffers / 8) * 8 - 8 * group;
      return { ...layer, layerId, buffers: roles.map((role) => ({ role, size })) } as LayerConfig;
    }),
    tiers: [
      { tier: 'device', quota: GRAIN_BYTES * grains.reduce((sum, count) => sum + count, 0) },
      ...(hostSlots === undefined ? [] : [{ tier: 'host' as const, quota: coldQuota(hostSlots) }]),
      ...(diskSlots === undefined ? [] : [{ tier: 'disk' as const, quota: coldQuota(diskSlots) }]),
    ],
    initialPoolRatio: grains,
    ...options,
  };
}

/** A text that is equal for layers whose buffers are in one group. */
function meaning({ roles: _, ...layer }: LayerShape): string {
  return JSON.stringify(layer);
}

/** Attention that sees everything. */
export function full(policy: ReusePolicy = 'required'): LayerShape {
  return { type: 'attention', reusePolicy: policy };
}

/** Attention that sees the last `slidingWindowSize` tokens and the first `numSinkTokens`. */
export function windowed(slidingWindowSize: number, policy: ReusePolicy = 'required', numSinkTokens = 0): LayerShape {
  return { type: 'attention', slidingWindowSize, numSinkTokens, reusePolicy: policy } as LayerShape;
}

/** A layer with recurrent state. */
export function recurrent(policy: ReusePolicy = 'required'): LayerShape {
  return { type: 'ssm', reusePolicy: policy };
}

/** The tokens 0 … count - 1. */
export function seq(count: number): number[] {
  return Array.from({ length: count }, (_, token) => token);
}
