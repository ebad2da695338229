import { BufferwiseError } from '@bufferwise/core-policy';

/** The choice of the next token was asked for with impossible settings, or from an answer that is not numbers. */
export class SamplingError extends BufferwiseError {
  declare readonly code: 'sampling-options' | 'sampling-logits';
  /** The setting at fault; undefined when the logits are. */
  readonly option: string | undefined;

  constructor(code: 'sampling-options' | 'sampling-logits', message: string, option?: string) {
    super(code, message);
    this.option = option;
  }
}
