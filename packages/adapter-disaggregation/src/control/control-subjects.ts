import { ControlError } from './control-error.ts';

/** Where on the bus what is said. */
export class ControlSubjects {
  readonly #namespace: string;

  /** @throws {ControlError} `invalid-control-options` */
  constructor(namespace: string) {
    if (!/^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/.test(namespace) || namespace.length > 128)
      throw new ControlError(
        'invalid-control-options',
        `the namespace is ${JSON.stringify(namespace)}; take words of letters, digits, _ and - with dots between, 128 characters at most`,
      );
    this.#namespace = namespace;
  }

  /** A worker to all who route; `*` for any worker. */
  fromWorker(worker: string): string {
    return `${this.#namespace}.from-worker.${worker}`;
  }

  /** To one worker. */
  worker(worker: string): string {
    return `${this.#namespace}.worker.${worker}`;
  }

  /** To all workers. */
  get workers(): string {
    return `${this.#namespace}.workers`;
  }

  /** To one who routes. */
  router(router: string): string {
    return `${this.#namespace}.router.${router}`;
  }

  /** Jobs for any prefill worker of a pool. */
  prefill(pool: string): string {
    return `${this.#namespace}.prefill.${pool}`;
  }
}
