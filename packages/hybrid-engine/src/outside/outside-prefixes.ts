import { type BlocksByGroup, type ConnectorLayout, connectorMemory, type KvConnector } from '@bufferwise/adapter-kit';
import type { KvCache, KvCacheManager, PageDevice, ReuseScope } from '@bufferwise/cache-manager';
import { blockKeys, keyToHex } from '@bufferwise/cache-manager/outside';
import type { LayerGroupId } from '@bufferwise/core-policy';
import { EngineError } from '../engine/engine-error.ts';
import { ConnectorSteps } from './connector-steps.ts';

export interface OutsideOptions {
  /** Loads asynchronously. Stays the caller's, who closes it after the engine. */
  readonly connector: KvConnector;
  /** Names the weights, and everything else that decides what is in a page: others' pages under another name are never used. */
  readonly modelFingerprint: string;
  /** Milliseconds that a request waits for the answer whether there is something to load. Default 1000. */
  readonly lookupMs?: number;
  /** Fewer tokens are computed rather than loaded, and not saved. Default: two blocks. */
  readonly minTokens?: number;
}

/** What was moved, counted. */
export interface OutsideCounts {
  /** Tokens of prefixes that came from outside. */
  loadedTokens: number;
  savedTokens: number;
  /** Loads of which a page was missing or damaged, or whose connector failed: their prefixes were computed. */
  failedLoads: number;
  /** Saves whose connector failed. */
  failedSaves: number;
  /** Requests that did not wait for the answer. */
  slowLookups: number;
}

const LOOKUP_MS = 1000;
/** Ends of prefixes of which it is remembered that they were saved. */
const MAX_REMEMBERED = 4096;

/**
 * Prefixes that are kept outside of the process: brought into the cache before a request looks there, and saved once it was computed.
 *
 * Both are requests of their own to the manager, beside those that compute. A load takes pages, has them filled, and publishes them as if it
 * had computed them; what did not come whole is given back, and nobody ever sees it. A save holds what was published on the device
 * until its bytes are read. So no step waits for a store, and a store that is down, slow or wrong costs time alone.
 */
export class OutsidePrefixes {
  readonly counts: OutsideCounts = { loadedTokens: 0, savedTokens: 0, failedLoads: 0, failedSaves: 0, slowLookups: 0 };
  readonly #manager: KvCacheManager;
  readonly #steps: ConnectorSteps;
  readonly #lookupMs: number;
  readonly #minTokens: number;
  readonly #remembered = new Set<string>();
  /** Loads and saves under way. */
  readonly #moving = new Set<Promise<void>>();
  #closed = false;

  /** @throws {EngineError} `engine-options` on a number that is none, and when the connector loads inside of steps only */
  constructor(manager: KvCacheManager, device: PageDevice, layout: ConnectorLayout, options: OutsideOptions) {
    const { connector, lookupMs = LOOKUP_MS, minTokens = 2 * manager.layout.tokensPerBlock } = options;
    if (!connector.supports.asyncLoad)
      throw new EngineError(
        'engine-options',
        `connector ${connector.name} loads inside of steps only (supports.asyncLoad is false), and would make all requests wait; take one that does not`,
      );
    requireNumber('outside.lookupMs', lookupMs);
    requireNumber('outside.minTokens', minTokens);
    this.#manager = manager;
    this.#lookupMs = lookupMs;
    this.#minTokens = minTokens;
    connector.register(layout, connectorMemory(manager, device));
    this.#steps = new ConnectorSteps(connector, [...new Set(layout.groups.flatMap(({ layerIds }) => layerIds))]);
  }

  /** Brings what the outside has of a prompt beyond what is here into the cache. Settles without an error, whatever happens. */
  load(tokens: Uint32Array, scope: ReuseScope | undefined): Promise<void> {
    return this.#track(this.#load(tokens, scope), 'failedLoads');
  }

  /** Saves what was published of some prefixes, in the background: of each what it takes to go on from its last whole block. */
  save(prefixes: readonly Uint32Array[], scope: ReuseScope | undefined): void {
    void this.#track(this.#saveAll(prefixes, scope), 'failedSaves');
  }

  /** Settles when nothing is on its way any more. */
  async settled(): Promise<void> {
    while (this.#moving.size > 0) await Promise.all(this.#moving);
  }

  /** Begins nothing more, and settles when nothing is on its way. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.settled();
  }

  #track(move: Promise<void>, failures: 'failedLoads' | 'failedSaves'): Promise<void> {
    const tracked = move.catch(() => {
      this.counts[failures]++;
    });
    this.#moving.add(tracked);
    void tracked.then(() => this.#moving.delete(tracked));
    return tracked;
  }

  async #load(tokens: Uint32Array, scope: ReuseScope | undefined): Promise<void> {
    const here = this.#wholeBlocks(this.#manager.probeReuse(tokens, scope));
    if (tokens.length - here < this.#minTokens || this.#closed) return;
    const id = this.#steps.begin({ tokens, scope });
    const loader: { cache: KvCache | null; blocks: BlocksByGroup } = { cache: null, blocks: [] };
    try {
      const offer = await this.#steps.lookup(id, here, performance.now() + this.#lookupMs);
      if (offer === null) this.counts.slowLookups++;
      else if (offer.tokens >= this.#minTokens && !this.#closed) await this.#take(id, tokens, scope, here, offer, loader);
    } finally {
      await this.#steps.end(id, loader.blocks).finally(() => loader.cache?.close());
    }
  }

  /** Has the pages of an offer loaded, and publishes them if all of them came. */
  async #take(
    id: number,
    tokens: Uint32Array,
    scope: ReuseScope | undefined,
    here: number,
    offer: { readonly tokens: number; readonly groups: readonly LayerGroupId[] },
    loader: { cache: KvCache | null; blocks: BlocksByGroup },
  ): Promise<void> {
    const end = here + offer.tokens;
    const cache = this.#manager.createKvCache({ tokens: tokens.subarray(0, end), scope, expectedPromptLength: end });
    loader.cache = cache;
    const isOffered = (groupId: LayerGroupId) => offer.groups.includes(groupId);
    // Whoever computed or loaded the same meanwhile was first: nothing is loaded behind another beginning than was asked about.
    if (this.#wholeBlocks(cache.numCommittedTokens) !== here) return;
    // Behind nothing all groups are published, so all have to come.
    const optional = cache.reuseStatus.filter(({ policy }) => policy === 'optional');
    if (cache.numCommittedTokens === 0 && !optional.every(({ groupId }) => isOffered(groupId))) return;
    const selection = selectionOf(cache, isOffered);
    if (!(await cache.resume(selection)) || this.#closed || !cache.resize(end, end)) return;
    // Of optional groups those that are published: behind nothing all, else the selected ones.
    const left = optional.filter(
      ({ groupId }) => cache.numCommittedTokens > 0 && !selection.optionalReuseGroups.includes(groupId),
    );
    loader.blocks = this.#blocksOf(cache, (groupId) => isOffered(groupId) && !left.some((group) => group.groupId === groupId));
    const whole = await this.#steps.load(id, loader.blocks, here, offer.tokens);
    if (!whole) this.counts.failedLoads++;
    if (!whole || this.#closed) return;
    cache.commit(tokens.subarray(cache.numCommittedTokens, end), { snapshot: true });
    this.counts.loadedTokens += offer.tokens;
  }

  async #saveAll(prefixes: readonly Uint32Array[], scope: ReuseScope | undefined): Promise<void> {
    for (const tokens of prefixes) await this.#save(tokens, scope);
  }

  async #save(tokens: Uint32Array, scope: ReuseScope | undefined): Promise<void> {
    const cache = this.#publishedBlocks(tokens, scope);
    if (cache === null) return;
    const end = cache.numCommittedTokens;
    const key = keyToHex(blockKeys(tokens.subarray(0, end), scope, this.#manager.layout.tokensPerBlock).at(-1) as never);
    let blocks: BlocksByGroup = [];
    let id: number | undefined;
    try {
      if (this.#remembered.has(key) || end < this.#minTokens || this.#closed) return;
      if (!(await cache.resume(selectionOf(cache, () => true)))) return;
      const complete = new Set(cache.reuseStatus.filter((group) => group.complete).map(({ groupId }) => groupId));
      blocks = this.#blocksOf(cache, (groupId) => complete.has(groupId));
      id = this.#steps.begin({ tokens: tokens.subarray(0, end), scope });
      this.#steps.save(id, blocks, end);
      await this.#steps.end(id, blocks);
      this.counts.savedTokens += end;
      this.#remember(key);
    } finally {
      cache.close();
    }
  }

  /** What is published of a prompt, up to where a block ends at which all groups can continue; null when that is nothing. */
  #publishedBlocks(tokens: Uint32Array, scope: ReuseScope | undefined): KvCache | null {
    for (let end = this.#wholeBlocks(tokens.length); end > 0; ) {
      const cache = this.#manager.createKvCache({ tokens: tokens.subarray(0, end), scope });
      const matched = cache.numCommittedTokens;
      if (matched > 0 && matched === this.#wholeBlocks(matched)) return cache;
      cache.close();
      end = this.#wholeBlocks(matched);
    }
    return null;
  }

  #blocksOf(cache: KvCache, isMoved: (groupId: LayerGroupId) => boolean): BlocksByGroup {
    const { lifecycles, bufferGrouping } = this.#manager;
    return bufferGrouping.map((_, index) => {
      const groupId = index as LayerGroupId;
      const { kind, policy } = lifecycles.get(groupId);
      if (policy === 'private' || !isMoved(groupId)) return undefined;
      return kind === 'ssm' ? [cache.ssmBlockBaseIndex(groupId)] : [...cache.basePageIndices(groupId)];
    });
  }

  #remember(key: string): void {
    if (this.#remembered.size === MAX_REMEMBERED) this.#remembered.delete(this.#remembered.values().next().value as string);
    this.#remembered.add(key);
  }

  #wholeBlocks(numTokens: number): number {
    return numTokens - (numTokens % this.#manager.layout.tokensPerBlock);
  }
}

/** @throws {EngineError} `engine-options` on anything but a number from 0 on */
function requireNumber(name: string, value: number): void {
  if (value >= 0) return;
  throw new EngineError('engine-options', `${name} is ${value}; it must be a number, at least 0`);
}

/** The optional groups that are complete and wanted. */
function selectionOf(
  { reuseStatus }: KvCache,
  isWanted: (groupId: LayerGroupId) => boolean,
): { optionalReuseGroups: LayerGroupId[] } {
  const chosen = reuseStatus.filter(({ policy, complete, groupId }) => policy === 'optional' && complete && isWanted(groupId));
  return { optionalReuseGroups: chosen.map(({ groupId }) => groupId) };
}
