import type { ConfigFaultCode } from '../errors/config-error.ts';
import type { Fault, ReadFaultCode } from '../errors/fault.ts';

/** Where the readers of fields note what they find. */
export interface FaultSink {
  /** Faults noted so far. */
  readonly count: number;
  /** Notes a fault. Always returns undefined, the value of a field that cannot be used. */
  note(code: ReadFaultCode, path: string, value: unknown, message: string): undefined;
}

/** Collects what is wrong with one input, so that all of it can be told together. */
export class FaultLog<Code extends string = ConfigFaultCode> {
  readonly #faults: Fault<Code>[] = [];

  /** Faults noted so far. */
  get count(): number {
    return this.#faults.length;
  }

  /** Notes a fault. Always returns undefined, the value of a field that cannot be used. */
  note(code: Code, path: string, value: unknown, message: string): undefined {
    this.#faults.push({ code, path, value, message });
  }

  /** Throws an error with all faults when anything was noted. */
  throwIfAny(FaultsError: new (faults: readonly Fault<Code>[]) => Error): void {
    if (this.#faults.length > 0) throw new FaultsError(this.#faults);
  }
}
