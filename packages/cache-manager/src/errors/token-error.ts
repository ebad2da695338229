import { BufferwiseError } from '@bufferwise/core-policy';

/** A token sequence holds something that is neither a token id nor a digest. Codes: `invalid-token`, `invalid-digest`. */
export class TokenError extends BufferwiseError {
  /** Position of the offender in the sequence that was given. */
  readonly position: number;

  constructor(code: 'invalid-token' | 'invalid-digest', position: number, message: string) {
    super(code, message);
    this.position = position;
  }
}
