import { ConfigError, type ConfigFault, type ConfigFaultCode } from '../errors/config-error.ts';

/** Collects what is wrong with one input, so that all of it can be told together. */
export class FaultLog {
  readonly #faults: ConfigFault[] = [];

  /** Faults noted so far. */
  get count(): number {
    return this.#faults.length;
  }

  /** Notes a fault. Always returns undefined, the value of a field that cannot be used. */
  note(code: ConfigFaultCode, path: string, value: unknown, message: string): undefined {
    this.#faults.push({ code, path, value, message });
  }

  /** @throws {ConfigError} when anything was noted */
  throwIfAny(): void {
    if (this.#faults.length > 0) throw new ConfigError(this.#faults);
  }
}
