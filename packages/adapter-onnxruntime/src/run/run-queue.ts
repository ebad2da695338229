/** One thing at a time, in the order of the calls: an `InferenceSession` need not do with two runs at once. */
export class RunQueue {
  #last: Promise<unknown> = Promise.resolve();

  /** Runs `work` when its turn has come. A signal that is aborted before then rejects at once, and `work` is never begun. */
  run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    let giveUp: (() => void) | undefined;
    const turn = this.#last.then(() => {
      signal?.throwIfAborted();
      if (giveUp !== undefined) signal?.removeEventListener('abort', giveUp);
      return work();
    });
    this.#last = turn.catch(() => {});
    if (signal === undefined) return turn;
    return new Promise((resolve, reject) => {
      giveUp = () => reject(signal.reason);
      signal.addEventListener('abort', giveUp, { once: true });
      turn.then(resolve, reject);
    });
  }
}
