import type { MovingPages, OutgoingTransfer, TransferReport } from '@bufferwise/adapter-disaggregation';
import type { ReuseScope } from '@bufferwise/cache-manager';
import type { LayerGroupId } from '@bufferwise/core-policy';
import { GenerationTask } from './generation-task.ts';

/** What the engine has of a request that is to move. */
export interface MovingPrompt extends MovingPages {
  /** All tokens of the prompt but the last one, which the receiver computes: its logits choose the first token. */
  readonly tokens: Uint32Array;
  readonly scope?: ReuseScope;
}

/** Begins the transfer: what `TransferSender.send` answers. */
export type StartMove = (moving: MovingPrompt) => OutgoingTransfer;

const NOWHERE = new Int32Array(0);

/**
 * A prompt that is read here and answered elsewhere. It begins once the receiver has room and lacks something, its pages go while it is
 * computed, and it ends with the transfer. Where it has to give its pages up before they went it comes in again and computes what is lost.
 */
export class PrefillTask extends GenerationTask {
  #transfer: OutgoingTransfer | null = null;

  override get wanted(): boolean {
    return this.#transfer?.needsPages === true && !(this.active && this.#isRead);
  }

  /** Begins the transfer, and computes. @returns how the transfer ended. Rejects with what the task failed with */
  async move(start: StartMove): Promise<TransferReport> {
    try {
      this.#transfer = start({
        tokens: this.known.slice(0, this.#handover),
        scope: this.request.scope,
        pages: {
          basePageIndices: (groupId) => this.#writtenBlocks(groupId),
          ssmBlockBaseIndex: (groupId) => (this.active && this.#isRead ? this.cache.ssmBlockBaseIndex(groupId) : -1),
        },
        release: () => this.end(),
        wake: () => this.ask(),
      });
      this.ask();
      const report = await this.#transfer.done;
      this.throwIfFailed();
      return report;
    } finally {
      this.end();
    }
  }

  override async open(): Promise<boolean> {
    const isOpen = await super.open();
    if (isOpen) this.#tellProgress();
    return isOpen;
  }

  override submitted(): void {
    super.submitted();
    if (this.#isRead) this.host.settle(this.cache);
    this.#tellProgress();
  }

  accept(): void {}

  protected override get extraCuts(): readonly number[] {
    return [this.#handover];
  }

  protected onEnd(): void {
    this.#transfer?.abort('the prompt is not read any more');
  }

  get #handover(): number {
    return this.promptLength - 1;
  }

  /** Whether its pages hold all that moves. */
  get #isRead(): boolean {
    return this.requireOpened().catchUp === null && this.cache.historyLength >= this.#handover;
  }

  /** Pages of the blocks that are written to their ends. */
  #writtenBlocks(groupId: LayerGroupId): Int32Array {
    if (!this.active || this.requireOpened().catchUp !== null) return NOWHERE;
    const indices = this.cache.basePageIndices(groupId);
    return this.#isRead ? indices : indices.subarray(0, Math.floor(this.cache.historyLength / this.host.blockTokens));
  }

  #tellProgress(): void {
    if (!this.ended && this.active && this.requireOpened().catchUp === null) this.#transfer?.progress(this.cache.historyLength);
  }
}
