import type { BlocksByGroup, ConnectorRequest, KvConnector, Lookup } from '@bufferwise/adapter-kit';

/** Milliseconds between two looks at a connector that something is awaited of. */
const POLL_MS = 2;

/**
 * Drives a connector, which lives by steps, for jobs that do not: loads and saves of whole prefixes beside the steps of a model. Steps are
 * made as they are needed, one at a time; nothing waits in them, as loads are asynchronous.
 */
export class ConnectorSteps {
  readonly #connector: KvConnector;
  readonly #layerIds: readonly number[];
  readonly #saved = new Set<number>();
  readonly #loaded = new Set<number>();
  /** Pages that did not come, as `group slot`, until somebody asks. */
  readonly #failed = new Set<string>();
  #announced: number[] = [];
  #nextId = 0;

  /** @param layerIds all layers with pages, in the order of the model */
  constructor(connector: KvConnector, layerIds: readonly number[]) {
    this.#connector = connector;
    this.#layerIds = layerIds;
  }

  begin(request: Omit<ConnectorRequest, 'id'>): number {
    const id = this.#nextId++;
    this.#connector.scheduler.onNewRequest({ ...request, id });
    return id;
  }

  /** What there is to be loaded, once it is known; null when that took too long. */
  async lookup(id: number, computedTokens: number, until: number): Promise<Extract<Lookup, { state: 'known' }> | null> {
    for (;;) {
      const answer = this.#connector.scheduler.lookup(id, computedTokens);
      if (answer.state === 'known') return answer;
      if (performance.now() > until) return null;
      await pause();
    }
  }

  /** Loads pages, and settles when all have come or failed. @returns whether all have come */
  async load(id: number, blocks: BlocksByGroup, computedTokens: number, externalTokens: number): Promise<boolean> {
    this.#connector.scheduler.allocated(id, blocks, computedTokens, externalTokens);
    await this.#until(() => this.#loaded.delete(id));
    this.#connector.scheduler.allocated(id, blocks, computedTokens, 0);
    let whole = true;
    blocks.forEach((slots, groupId) => {
      for (const slot of slots ?? []) if (this.#failed.delete(`${groupId} ${slot}`)) whole = false;
    });
    return whole;
  }

  /** Hands pages over to be saved; `end` settles when they may be given away. */
  save(id: number, blocks: BlocksByGroup, writtenTokens: number): void {
    this.#connector.scheduler.willWrite(id, blocks, writtenTokens);
    this.#step();
  }

  /** Ends a request, and settles when its pages may be given away. Rejects with what the connector throws: it does nothing with them any more then. */
  async end(id: number, blocks: BlocksByGroup): Promise<void> {
    const { delayFree } = this.#connector.scheduler.requestFinished(id, blocks);
    this.#announced.push(id);
    if (!delayFree) this.#step();
    else await this.#until(() => this.#saved.delete(id));
    this.#saved.delete(id);
  }

  async #until(isDone: () => boolean): Promise<void> {
    for (;;) {
      this.#step();
      if (isDone()) return;
      await pause();
    }
  }

  #step(): void {
    const { scheduler, worker } = this.#connector;
    worker.beginStep(scheduler.buildStep());
    void worker.preempted([]);
    worker.startLoad();
    for (const layerId of this.#layerIds) worker.saveLayer(layerId);
    // Pages stay where they are until the request is told as saved, so nobody has to wait for the reading.
    void worker.waitForSave().catch(() => {});
    const finished = worker.finished(this.#announced);
    this.#announced = [];
    const failedPages = worker.failedPages();
    worker.endStep();
    scheduler.update({ finished, failedPages });
    for (const id of finished.saved) this.#saved.add(id);
    for (const id of finished.loaded) this.#loaded.add(id);
    for (const { groupId, slot } of failedPages) this.#failed.add(`${groupId} ${slot}`);
  }
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, POLL_MS));
}
