import { BufferwiseError } from './bufferwise-error.ts';
import { describeFaults, type Fault, type ReadFaultCode } from './fault.ts';

/** What can be wrong with a model's config, or with the options of a preset. Stable within a major version. */
export type PresetFaultCode =
  | ReadFaultCode
  | 'preset-unknown-family'
  | 'preset-list-length'
  | 'preset-not-divisible'
  | 'preset-sizes-disagree'
  | 'preset-not-causal';

/** One thing that is wrong with a model's config. Paths of options begin with `options`. */
export type PresetFault = Fault<PresetFaultCode>;

/** A model config that gives no layers. Tells every fault at once; `code`, `path` and `value` are those of the first. */
export class PresetError extends BufferwiseError {
  /** Code of the first fault. */
  declare readonly code: PresetFaultCode;
  /** Where the first fault is, like `text_config.num_hidden_layers` or `options.tokensPerBlock`. */
  readonly path: string;
  /** What stood at `path`. */
  readonly value: unknown;
  /** All faults: those of the options first, then in the order in which the family reads its fields. Never empty. */
  readonly faults: readonly PresetFault[];

  /** @param faults at least one */
  constructor(faults: readonly PresetFault[]) {
    const first = faults[0];
    super(first.code, describeFaults('The model config', 'The model config', faults));
    this.path = first.path;
    this.value = first.value;
    this.faults = Object.freeze(faults.map((fault) => Object.freeze({ ...fault })));
  }
}
