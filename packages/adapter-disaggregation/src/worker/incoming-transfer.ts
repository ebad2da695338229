import type { PageConnection } from '@bufferwise/adapter-kit';
import type { GroupReuseStatus, KvCache, KvCacheManager, ReuseScope, TokenSeq } from '@bufferwise/cache-manager';
import { planTransfer, type ReceiverGroup } from '../transfer/plan-transfer.ts';
import { type ReceiverAction, type ReceiverInput, ReceiveTransfer } from '../transfer/receive-transfer.ts';
import type { TransferMessage } from '../transfer/transfer-message.ts';
import type { TransferOutcome } from '../transfer/transfer-times.ts';
import { say } from './connection-ear.ts';
import type { ManagerPages } from './manager-pages.ts';
import { PageAssembly, PageParts } from './page-parts.ts';
import { promptDigest } from './prompt-digest.ts';
import { type TransferReport, TransferTraffic } from './transfer-report.ts';
import type { WorkerSettings } from './worker-options.ts';

/** A request that another worker would hand over. */
export interface TransferOffer {
  readonly request: string;
  readonly generation: number;
  /** Tokens with which it would come. */
  readonly handover: number;
  /** What the sender says of it. As it came: check it. */
  readonly note: string;
}

/** A request that has moved here. */
export interface ArrivedRequest {
  readonly request: string;
  readonly generation: number;
  /** Active, its history at the hand-over, and all of its pages whole. The caller's from here on, who closes it. */
  readonly cache: KvCache;
  /** What was reused here of each group of the manager, and what is one with others'; index = group id. */
  readonly reuse: readonly GroupReuseStatus[];
  readonly report: TransferReport;
}

/** What is to become of an offer. */
export type Admission =
  | { readonly refuse: string }
  | {
      /** Tokens of the request, of which the first `handover` count. */
      readonly tokens: TokenSeq;
      readonly scope?: ReuseScope;
      /** Whether others may reuse what comes. Default true. */
      readonly publish?: boolean;
      /** It is here. What is thrown closes the request. */
      arrived(request: ArrivedRequest): void;
      /** It will not come; nothing is held. Another try may come. */
      failed?(report: TransferReport): void;
    };

/** Says what is to become of an offer; may wait until the worker knows of the request itself. The signal: it was given up meanwhile. */
export type Admit = (offer: TransferOffer, options: { signal: AbortSignal }) => Admission | Promise<Admission>;

type Admitted = Exclude<Admission, { refuse: string }>;

interface IncomingParts {
  readonly request: string;
  readonly generation: number;
  readonly connection: PageConnection;
  readonly manager: KvCacheManager;
  readonly pages: ManagerPages;
  readonly modelFingerprint: string;
  readonly admit: Admit;
  readonly settings: WorkerSettings;
}

/** Room that is held for a transfer, and what it is for. */
interface Room {
  readonly admitted: Admitted;
  readonly cache: KvCache;
  /** Tokens behind those that the cache has committed. */
  readonly rest: TokenSeq;
  readonly reuse: readonly GroupReuseStatus[];
}

/** Ranges of coverage that are told: what is beyond travels although it is there, which is never wrong. */
const MOST_RANGES = 1024;

/** A request on its way to this worker: room for it, taken first, and the pages that come into it. */
export class IncomingTransfer {
  readonly request: string;
  readonly generation: number;
  readonly #parts: IncomingParts;
  readonly #machine: ReceiveTransfer;
  readonly #traffic = new TransferTraffic();
  readonly #closing = new AbortController();
  readonly #assemblies = new Map<number, PageAssembly>();
  #admitted: Admitted | null = null;
  #room: Room | null = null;
  #handedOver = false;

  constructor(parts: IncomingParts) {
    const { request, generation, pages, modelFingerprint, settings } = parts;
    this.#parts = parts;
    this.request = request;
    this.generation = generation;
    this.#machine = new ReceiveTransfer({
      layout: pages.layout,
      model: modelFingerprint,
      partBytes: settings.maxPagesBytes,
      nowMs: settings.clock.now(),
      times: settings.times,
    });
  }

  get connection(): PageConnection {
    return this.#parts.connection;
  }

  get isOpen(): boolean {
    return this.#machine.outcome === undefined;
  }

  /** Whether room is held for it. */
  get holds(): boolean {
    return this.#room !== null;
  }

  hear(message: TransferMessage): void {
    this.#tell({ kind: 'message', message });
  }

  come(group: number, firstPage: number, bytes: Uint8Array): void {
    if (!this.isOpen || this.#room === null || this.#parts.pages.layout.groups[group] === undefined) return;
    const whole = this.#assembly(group).take(firstPage, bytes);
    if (whole === null) {
      this.abort(`pages of group ${group} came as ${bytes.length} bytes`);
      return;
    }
    this.#traffic.moved(group, whole.length, bytes.length);
    try {
      for (const page of whole) this.#tell({ kind: 'page', group, ...page });
    } catch (error) {
      this.abort(`a page could not be written: ${(error as Error).message}`);
    }
  }

  abort(reason: string): void {
    this.#tell({ kind: 'abort', reason });
  }

  lost(reason: string): void {
    this.#tell({ kind: 'lost', reason });
  }

  tick(): void {
    this.#tell({ kind: 'tick' });
  }

  #tell(input: ReceiverInput): void {
    for (const action of this.#machine.handle(input, this.#parts.settings.clock.now())) this.#act(action);
  }

  #act(action: ReceiverAction): void {
    const { connection, pages } = this.#parts;
    switch (action.do) {
      case 'send':
        void say(connection, this.request, this.generation, action.message);
        break;
      case 'allocate':
        void this.#allocate(action.handover, action.request.prompt, action.request.note);
        break;
      case 'write': {
        const { cache } = this.#room as Room;
        pages.write(action.group, pages.slotOf(cache, action.group, action.block), action.bytes);
        break;
      }
      case 'hand-over':
        this.#handedOver = true;
        break;
      case 'release':
        this.#release();
        break;
      case 'finish':
        this.#finish(action.outcome);
        break;
    }
  }

  #assembly(group: number): PageAssembly {
    const known = this.#assemblies.get(group);
    if (known !== undefined) return known;
    const parts = new PageParts(this.#parts.pages.layout.groups[group].pageBytes, this.#machine.partBytes);
    const assembly = new PageAssembly(parts, (block) => this.#machine.isMissing(group, block));
    this.#assemblies.set(group, assembly);
    return assembly;
  }

  /** Takes room for the request, and says what it has of each group; refuses where that cannot be. */
  async #allocate(handover: number, prompt: string, note: string): Promise<void> {
    const { request, generation, admit, pages } = this.#parts;
    try {
      const offer = { request, generation, handover, note };
      const admission = await admit(offer, { signal: this.#closing.signal });
      if ('refuse' in admission) {
        this.#tell({ kind: 'refused', reason: admission.refuse });
        return;
      }
      if (this.#machine.outcome !== undefined) {
        admission.failed?.(this.#traffic.report(this.#machine.outcome));
        return;
      }
      this.#admitted = admission;
      const room = await this.#takeRoom(admission, handover, prompt);
      if (typeof room === 'string') {
        this.#tell({ kind: 'refused', reason: room });
        return;
      }
      this.#room = room;
      if (!this.isOpen) {
        this.#tell({ kind: 'allocated', groups: [] });
        return;
      }
      const groups = receiverGroups(pages, this.#parts.manager, room.reuse);
      this.#traffic.begin(pages.layout, planTransfer(pages.layout, groups, handover).pages);
      this.#tell({ kind: 'allocated', groups });
    } catch (error) {
      this.#release();
      this.#tell({ kind: 'refused', reason: `the request cannot be taken: ${(error as Error).message}` });
    }
  }

  /** @returns why not, when there is none; nothing is held then */
  async #takeRoom(admitted: Admitted, handover: number, prompt: string): Promise<Room | string> {
    const { manager } = this.#parts;
    const { scope, publish = true } = admitted;
    if (admitted.tokens.length < handover)
      return `the request has ${admitted.tokens.length} tokens here, and would come with ${handover}`;
    const tokens = sliced(admitted.tokens, 0, handover);
    if (promptDigest(tokens, scope) !== prompt) return 'the request has other tokens here, or another scope';
    const cache = manager.createKvCache({ tokens, scope, expectedPromptLength: handover });
    try {
      const optional = cache.reuseStatus.filter(({ policy }) => policy === 'optional');
      const isResumed = await cache.resume({
        optionalReuseGroups: optional.filter(({ complete }) => complete).map(({ groupId }) => groupId),
        rebuiltGroups: optional.filter(({ complete }) => !complete).map(({ groupId }) => groupId),
      });
      if (!isResumed || !cache.resize(handover, handover)) {
        cache.close();
        return `there is no room for ${handover} tokens now`;
      }
      if (!publish) cache.stopCommitting();
      const rest = sliced(tokens, cache.numCommittedTokens, handover);
      return { admitted, cache, rest, reuse: cache.takePublished(rest) };
    } catch (error) {
      cache.close();
      throw error;
    }
  }

  #release(): void {
    this.#room?.cache.close();
    this.#room = null;
  }

  #finish(outcome: TransferOutcome): void {
    this.#closing.abort();
    this.#assemblies.clear();
    const room = this.#room;
    const report = this.#traffic.report(outcome);
    if (!this.#handedOver || room === null) {
      this.#admitted?.failed?.(report);
      return;
    }
    this.#room = null;
    const { cache, rest, reuse, admitted } = room;
    try {
      if (admitted.publish !== false) cache.commit(rest, { snapshot: true });
      const { request, generation } = this;
      admitted.arrived({ request, generation, cache, reuse, report });
    } catch {
      cache.close();
    }
  }
}

/** What there is of each group of the layout, as the sender is told. */
function receiverGroups(pages: ManagerPages, manager: KvCacheManager, reuse: readonly GroupReuseStatus[]): ReceiverGroup[] {
  let ranges = 0;
  return pages.layout.groups.map(({ buffers }) => {
    const { endpoint, coverage } = reuse[manager.getBufferGroupId(buffers[0].layerId, buffers[0].role)];
    const told = coverage.slice(0, Math.max(0, MOST_RANGES - ranges));
    ranges += told.length;
    return { endpoint, coverage: told };
  });
}

function sliced(tokens: TokenSeq, begin: number, end: number): TokenSeq {
  if (tokens instanceof Uint32Array) return tokens.subarray(begin, end);
  return Array.prototype.slice.call(tokens, begin, end);
}
