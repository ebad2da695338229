import { BufferwiseError } from './bufferwise-error.ts';
import { describeFaults, type Fault, type ReadFaultCode } from './fault.ts';

/** What can be wrong with a cache config. Stable within a major version. */
export type ConfigFaultCode =
  | ReadFaultCode
  | 'config-duplicate-layer-id'
  | 'config-duplicate-role'
  | 'config-override-not-a-divisor'
  | 'config-override-on-ssm'
  | 'config-sinks-without-window'
  | 'config-no-tiers'
  | 'config-first-tier-not-device'
  | 'config-device-tier-not-first'
  | 'config-history-above-capacity'
  | 'config-min-snapshot-required'
  | 'config-pool-ratio-length';

/** One thing that is wrong with a cache config. */
export type ConfigFault = Fault<ConfigFaultCode>;

/** A cache config that means nothing. Tells every fault at once; `code`, `path` and `value` are those of the first. */
export class ConfigError extends BufferwiseError {
  /** Code of the first fault. */
  declare readonly code: ConfigFaultCode;
  /** Where the first fault is, like `layers[3].buffers[1].size`. */
  readonly path: string;
  /** What stood at `path`. */
  readonly value: unknown;
  /** All faults, in the order of the input; faults between several fields come last. Never empty. */
  readonly faults: readonly ConfigFault[];

  /** @param faults at least one */
  constructor(faults: readonly ConfigFault[]) {
    const first = faults[0];
    super(first.code, describeFaults('The cache config', 'The config', faults));
    this.path = first.path;
    this.value = first.value;
    this.faults = Object.freeze(faults.map((fault) => Object.freeze({ ...fault })));
  }
}
