import { BufferwiseError } from '@bufferwise/core-policy';

/**
 * Why a prefix file is not taken, or not made:
 *
 * - `prefix-file-damaged`: it is no prefix file, ends too early or too late, has bytes changed, or says what cannot be
 * - `prefix-file-version`: it was written by a version that this one does not read
 * - `prefix-file-mismatch`: it is of another model, or of one that keeps its pages in another way (`differences`)
 * - `prefix-file-scope`: it was exported under another LoRA, or under a salt that was not given
 * - `prefix-file-inexact`: its pages are inexact, and the store is for exact ones
 * - `prefix-file-too-large`: it exceeds a limit
 * - `prefix-lost`: the store lost a page of the prefix while it was exported
 */
export type PrefixFileErrorCode =
  | 'prefix-file-damaged'
  | 'prefix-file-version'
  | 'prefix-file-mismatch'
  | 'prefix-file-scope'
  | 'prefix-file-inexact'
  | 'prefix-file-too-large'
  | 'prefix-lost';

/** One thing in which a file and its receiver differ. */
export interface PrefixDifference {
  readonly what: 'model' | 'tokens-per-block' | 'group';
  /** In words, as the file has it, and as it is here. */
  readonly inFile: string;
  readonly here: string;
}

/** A prefix file was refused, or could not be written to its end. */
export class PrefixFileError extends BufferwiseError {
  declare readonly code: PrefixFileErrorCode;
  /** With `prefix-file-mismatch`; else empty. */
  readonly differences: readonly PrefixDifference[];

  /** @param message what was wrong, where, and the way out */
  constructor(code: PrefixFileErrorCode, message: string, differences: readonly PrefixDifference[] = []) {
    super(code, message);
    this.differences = differences;
  }
}

/** The bytes cannot be those that were written. */
export function damaged(what: string): PrefixFileError {
  return new PrefixFileError('prefix-file-damaged', `the prefix file ${what}; get the file again, or export it anew`);
}
