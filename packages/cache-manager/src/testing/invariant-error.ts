import { BufferwiseError } from '@bufferwise/core-policy';

/** A manager's state contradicts itself: a bug of this package. Code `invariant`. Everything found is in the message. */
export class InvariantError extends BufferwiseError {
  readonly findings: readonly string[];

  constructor(findings: readonly string[]) {
    super('invariant', `the manager's state contradicts itself:\n  ${findings.join('\n  ')}`);
    this.findings = findings;
  }
}
