import { BufferwiseError } from './bufferwise-error.ts';

/** What can be wrong with a cache config. Stable within a major version. */
export type ConfigFaultCode =
  | 'config-missing'
  | 'config-wrong-type'
  | 'config-not-whole'
  | 'config-out-of-range'
  | 'config-unknown-key'
  | 'config-unknown-value'
  | 'config-empty-name'
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
export interface ConfigFault {
  /** What kind of fault it is. */
  readonly code: ConfigFaultCode;
  /** Where in the input, like `layers[3].buffers[1].size`; the empty string is the input itself. */
  readonly path: string;
  /** What stood there. */
  readonly value: unknown;
  /** What was expected, and the way out. */
  readonly message: string;
}

/** More faults than this are counted in the message, not listed; `faults` has them all. */
const LISTED_FAULTS = 20;

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
    super(first.code, messageOf(faults));
    this.path = first.path;
    this.value = first.value;
    this.faults = Object.freeze(faults.map((fault) => Object.freeze({ ...fault })));
  }
}

function messageOf(faults: readonly ConfigFault[]): string {
  if (faults.length === 1) return `The cache config is not valid. ${lineOf(faults[0])}`;
  const lines = faults.slice(0, LISTED_FAULTS).map((fault) => `  - ${lineOf(fault)}`);
  if (faults.length > LISTED_FAULTS) lines.push(`  … and ${faults.length - LISTED_FAULTS} more`);
  return `The cache config is not valid, ${faults.length} faults:\n${lines.join('\n')}`;
}

function lineOf(fault: ConfigFault): string {
  return `${fault.path === '' ? 'The config' : fault.path}: ${fault.message}`;
}
