import type { PageConnection } from '@bufferwise/adapter-kit';
import { cutPage, pagesNeeded } from '../transfer/cut-page.ts';
import { planTransfer } from '../transfer/plan-transfer.ts';
import type { Agreement, SenderAction, SenderInput, SendTransfer } from '../transfer/send-transfer.ts';
import type { TransferMessage } from '../transfer/transfer-message.ts';
import type { TransferOutcome } from '../transfer/transfer-times.ts';
import { say } from './connection-ear.ts';
import type { ManagerPages, PageSlots } from './manager-pages.ts';
import { PageParts } from './page-parts.ts';
import { type TransferReport, TransferTraffic } from './transfer-report.ts';
import type { WorkerSettings } from './worker-options.ts';

/** Where the pages of a request that moves come from. */
export interface MovingPages {
  /** Read at the moment a page is; -1 where a page is not on the device now. */
  readonly pages: PageSlots;
  /** The transfer needs the pages no more. Called once, however it ends. */
  release(): void;
  /**
   * Pages are wanted that are not computed yet, as the receiver lacks them, or that were and are not on the device: `progress` is to be
   * called once they are there. May come again and again.
   */
  wake?(): void;
}

interface OutgoingParts extends MovingPages {
  readonly request: string;
  readonly generation: number;
  readonly connection: PageConnection;
  readonly manager: ManagerPages;
  readonly machine: SendTransfer;
  readonly handover: number;
  readonly settings: WorkerSettings;
}

/** To be sent, one behind the other. */
type Outgoing = { readonly group: number; readonly block: number } | { readonly message: TransferMessage };

/** Pages of one group, of blocks that follow each other. */
interface Batch {
  readonly group: number;
  readonly firstBlock: number;
  readonly pages: readonly Uint8Array[];
}

/**
 * A request on its way to another worker. Pages go as soon as they are computed, while what follows is: tell `progress`. It holds the pages
 * of the request until it calls `release`.
 */
export class OutgoingTransfer {
  readonly request: string;
  readonly generation: number;
  /** How it ended. Never rejects. */
  readonly done: Promise<TransferReport>;
  readonly #parts: OutgoingParts;
  readonly #traffic = new TransferTraffic();
  readonly #closing = new AbortController();
  #outbox: Outgoing[] = [];
  #pumping = false;
  #finish: (report: TransferReport) => void = () => {};

  /** @internal Made by `TransferSender.send`. */
  constructor(parts: OutgoingParts) {
    this.#parts = parts;
    this.request = parts.request;
    this.generation = parts.generation;
    this.done = new Promise((resolve) => {
      this.#finish = resolve;
    });
  }

  /** Undefined while it is under way. */
  get outcome(): TransferOutcome | undefined {
    return this.#parts.machine.outcome;
  }

  get isOpen(): boolean {
    return this.outcome === undefined;
  }

  /**
   * Whether the receiver lacks pages that were not read yet. A request need not be computed before that is so, nor any more afterwards; as
   * long as it is so, one that gave its pages up has to have them again.
   */
  get needsPages(): boolean {
    return this.isOpen && (this.#parts.machine.needsPages || this.#outbox.some((each) => 'group' in each));
  }

  /** So many tokens of the request are in its pages, on the device. Also to be told when pages are back that were away. */
  progress(numTokens: number): void {
    this.#tell({ kind: 'progress', numTokens });
    void this.#pump();
  }

  /** Gives it up. The other side is told, and lets go too. */
  abort(reason: string): void {
    this.#tell({ kind: 'abort', reason });
  }

  /** @internal */
  start(): void {
    this.#run(this.#parts.machine.start(this.#now()));
  }

  /** @internal */
  hear(message: TransferMessage): void {
    this.#tell({ kind: 'message', message });
  }

  /** @internal */
  lost(reason: string): void {
    this.#tell({ kind: 'lost', reason });
  }

  /** @internal */
  tick(): void {
    this.#tell({ kind: 'tick' });
  }

  #tell(input: SenderInput): void {
    const { machine, handover } = this.#parts;
    const before = machine.agreed;
    const actions = machine.handle(input, this.#now());
    const { agreed } = machine;
    if (agreed !== before && agreed !== undefined && input.kind === 'message' && input.message.kind === 'accept') {
      const { receiver } = agreed.map;
      this.#traffic.begin(receiver, planTransfer(receiver, input.message.groups, handover).pages);
    }
    this.#run(actions);
    if (agreed !== before && this.needsPages) this.#parts.wake?.();
  }

  #run(actions: readonly SenderAction[]): void {
    for (const action of actions) {
      if (action.do === 'send-page') this.#outbox.push({ group: action.group, block: action.block });
      else if (action.do === 'send') this.#send(action.message);
      else if (action.do === 'release') {
        this.#outbox = [];
        this.#closing.abort();
        this.#parts.release();
      } else this.#finish(this.#traffic.report(action.outcome));
    }
    void this.#pump();
  }

  #send(message: TransferMessage): void {
    const { connection, request, generation } = this.#parts;
    if (message.kind !== 'done') {
      void say(connection, request, generation, message);
      return;
    }
    // Behind the pages that it is about. While these wait, the other side hears that somebody is there.
    if (this.#outbox.some((each) => 'message' in each)) void say(connection, request, generation, { kind: 'renew' });
    else this.#outbox.push({ message });
  }

  /** Sends what is to be sent, as long as its pages are there: the next pages are read while some are on their way. */
  async #pump(): Promise<void> {
    if (this.#pumping) return;
    this.#pumping = true;
    try {
      let reading = this.#readNext();
      for (;;) {
        const batch = await reading;
        if (this.#closing.signal.aborted) break;
        if (batch !== null) {
          reading = this.#readNext();
          // Whoever reads ahead waits for it below, whatever becomes of this batch.
          reading.catch(() => {});
          await this.#sendBatch(batch);
          continue;
        }
        const next = this.#outbox[0];
        if (next === undefined) break;
        if ('group' in next) {
          this.#parts.wake?.();
          break;
        }
        this.#outbox.shift();
        await say(this.#parts.connection, this.request, this.generation, next.message);
        reading = this.#readNext();
      }
    } catch (error) {
      this.#failed(error as Error);
    } finally {
      this.#pumping = false;
    }
  }

  #failed(error: Error): void {
    if (this.#closing.signal.aborted) return;
    // A lost connection is told by whoever listens to it, too; whoever is first counts.
    if ((error as { code?: string }).code === 'peer-lost') this.lost(error.message);
    else this.abort(`pages could not be read or sent: ${error.message}`);
  }

  /** Begins to read the next pages, which are taken out of the box. Null: there are none, or they are not on the device now. */
  async #readNext(): Promise<Batch | null> {
    const { machine, manager, pages, handover } = this.#parts;
    const first = this.#outbox[0];
    if (first === undefined || !('group' in first) || machine.agreed === undefined) return null;
    const { map } = machine.agreed;
    const { group, block: firstBlock } = first;
    const { pagesAtATime } = this.#split(machine.agreed, group);
    /** By sender's group: blocks and where they are. */
    const sources = new Map<number, Map<number, number>>();
    let count = 0;
    while (count < pagesAtATime) {
      const next = this.#outbox[count];
      if (next === undefined || !('group' in next) || next.group !== group || next.block !== firstBlock + count) break;
      const needed = pagesNeeded(map, group, next.block, handover);
      const slots = needed.map(([fromGroup, block]) => manager.slotOf(pages, fromGroup, block));
      if (slots.some((slot) => slot < 0)) break;
      needed.forEach(([fromGroup, block], i) => {
        const ofGroup = sources.get(fromGroup) ?? new Map<number, number>();
        sources.set(fromGroup, ofGroup.set(block, slots[i]));
      });
      count++;
    }
    if (count === 0) return null;
    this.#outbox.splice(0, count);
    const read = new Map<string, Uint8Array>();
    await Promise.all(
      [...sources].map(async ([fromGroup, slots]) => {
        const blocks = [...slots.keys()];
        const bytes = await manager.read(fromGroup, [...slots.values()]);
        for (const [i, block] of blocks.entries()) read.set(`${fromGroup} ${block}`, bytes[i]);
      }),
    );
    const pageOf = (fromGroup: number, block: number) => read.get(`${fromGroup} ${block}`) as Uint8Array;
    const cut = Array.from({ length: count }, (_, i) => cutPage(map, group, firstBlock + i, handover, pageOf));
    return { group, firstBlock, pages: cut };
  }

  async #sendBatch({ group, firstBlock, pages }: Batch): Promise<void> {
    const { connection, request, generation, machine } = this.#parts;
    const parts = this.#split(machine.agreed as Agreement, group);
    for (const { firstPage, bytes } of parts.split(firstBlock, pages)) {
      if (this.#closing.signal.aborted) return;
      await connection.sendPages({ stream: { request, generation, group }, firstPage, bytes }, { signal: this.#closing.signal });
      this.#traffic.moved(group, 0, bytes.length);
    }
    this.#traffic.moved(group, pages.length, 0);
  }

  #split({ map, partBytes }: Agreement, group: number): PageParts {
    return new PageParts(map.receiver.groups[group].pageBytes, partBytes);
  }

  #now(): number {
    return this.#parts.settings.clock.now();
  }
}
