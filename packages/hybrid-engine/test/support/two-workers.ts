import {
  type ArrivedRequest,
  TransferReceiver,
  type TransferReport,
  TransferSender,
  type TransferTimes,
} from '@bufferwise/adapter-disaggregation';
import type { PageConnection } from '@bufferwise/adapter-kit';
import { memoryTransportPair } from '@bufferwise/adapter-kit/memory';
import type { KvCache, ReuseScope } from '@bufferwise/cache-manager';
import { expect } from 'vitest';
import type { Completion } from '../../src/engine/completion.ts';
import { readToEnd } from '../../src/engine/completion.ts';
import type { GenerationRequest } from '../../src/engine/generation.ts';
import type { HybridEngine } from '../../src/engine/hybrid-engine.ts';
import type { StartMove } from '../../src/scheduler/prefill-task.ts';

const MODEL = 'the model of the test';

export interface MovedAnswer extends Completion {
  readonly transfer: TransferReport;
  readonly prefilled: number;
}

interface Expected {
  readonly tokens: Uint32Array;
  readonly scope?: ReuseScope;
  readonly publish?: boolean;
  arrived(request: ArrivedRequest): void;
  failed(report: TransferReport): void;
}

/** Two engines that requests move between, over a transport in memory. */
export class TwoWorkers {
  readonly prefill: HybridEngine;
  readonly decode: HybridEngine;
  readonly sender: TransferSender;
  readonly receiver: TransferReceiver;
  readonly #expected = new Map<string, Expected>();
  readonly #closing: () => Promise<void>;
  readonly connection: PageConnection;
  #names = 0;

  private constructor(
    [prefill, decode]: readonly [HybridEngine, HybridEngine],
    { connection, times, close }: { connection: PageConnection; times?: TransferTimes; close: () => Promise<void> },
  ) {
    this.prefill = prefill;
    this.decode = decode;
    this.connection = connection;
    this.#closing = close;
    this.sender = new TransferSender({ ...prefill.transferOptions, modelFingerprint: MODEL, times });
    this.receiver = new TransferReceiver({
      ...decode.transferOptions,
      modelFingerprint: MODEL,
      times,
      admit: ({ request }) => this.#expected.get(request) ?? { refuse: 'nobody waits for it' },
    });
  }

  static async of(engines: readonly [HybridEngine, HybridEngine], times?: TransferTimes): Promise<TwoWorkers> {
    const [here, there] = memoryTransportPair();
    const listener = await there.listen('decode');
    const connection = await here.connect('decode');
    const accepted = await listener.accept();
    let served: Promise<void> = Promise.resolve();
    const close = async () => {
      await here.close();
      await there.close();
      await served;
    };
    const workers = new TwoWorkers(engines, { connection, times, close });
    served = workers.receiver.serve(accepted);
    return workers;
  }

  /**
   * Has a prompt read by one worker and answered by the other.
   *
   * @param progressed told after each step how far the prompt is read
   */
  async answer(request: GenerationRequest, progressed: (numTokens: number) => void = () => {}): Promise<MovedAnswer> {
    const { transfer, counts, cache } = await this.#moved(request, progressed);
    const completion = await readToEnd(this.decode.continueFrom({ cache }, request));
    return { ...completion, transfer, prefilled: counts.computedTokens };
  }

  /** Has a prompt read by one worker. Returns it as it has come to the other one. */
  async move(request: GenerationRequest): Promise<KvCache> {
    const { cache } = await this.#moved(request, () => {});
    return cache;
  }

  async #moved(request: GenerationRequest, progressed: (numTokens: number) => void) {
    const name = `request ${this.#names++}`;
    const prompt = Uint32Array.from(request.prompt);
    const coming = new Promise<ArrivedRequest>((arrived, failed) => {
      const { scope, publish } = request;
      this.#expected.set(name, {
        tokens: prompt,
        scope,
        publish,
        arrived,
        failed: ({ outcome }) => failed(new Error(outcome.kind)),
      });
    });
    coming.catch(() => {});
    const { transfer, counts } = await this.prefill.prefillFor(request, (moving) => {
      const moved = this.start(name)(moving);
      const progress = moved.progress.bind(moved);
      moved.progress = (numTokens) => {
        progress(numTokens);
        progressed(numTokens);
      };
      return moved;
    });
    if (transfer.outcome.kind !== 'complete') throw new Error(`the move ended as ${JSON.stringify(transfer.outcome)}`);
    const { cache } = await coming;
    return { transfer, counts, cache };
  }

  start(name: string, generation = 0): StartMove {
    return (moving) => this.sender.send(this.connection, { ...moving, request: name, generation });
  }

  async close(): Promise<void> {
    expect([this.sender.numOpen, this.receiver.numOpen, this.receiver.numHolding]).toEqual([0, 0, 0]);
    for (const engine of [this.prefill, this.decode]) expect(engine.statistics().openRequests).toBe(0);
    this.sender.close();
    this.receiver.close();
    await this.#closing();
    await this.prefill.close();
    await this.decode.close();
  }
}

/** Bytes that went of each group are those that the receiver lacked, and no more than a fiftieth beyond them. */
export function expectNothingInVain({ transfer }: MovedAnswer): void {
  for (const { bytesMoved, bytesLacked, pagesMoved, pagesLacked } of transfer.groups) {
    expect(bytesMoved).toBeLessThanOrEqual(1.02 * bytesLacked);
    expect(pagesMoved).toBe(pagesLacked);
  }
}
