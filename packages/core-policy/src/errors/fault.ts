/** What a first look at a value can find, whatever it is part of. */
export type ReadFaultCode =
  | 'config-missing'
  | 'config-wrong-type'
  | 'config-not-whole'
  | 'config-out-of-range'
  | 'config-unknown-key'
  | 'config-unknown-value'
  | 'config-empty-name';

/** One thing that is wrong with an input. */
export interface Fault<Code extends string = string> {
  /** What kind of fault it is. */
  readonly code: Code;
  /** Where in the input, like `layers[3].buffers[1].size`; the empty string is the input itself. */
  readonly path: string;
  /** What stood there. */
  readonly value: unknown;
  /** What was expected, and the way out. */
  readonly message: string;
}

/** More faults than this are counted in the message, not listed. */
const LISTED_FAULTS = 20;

/**
 * All faults in one message.
 *
 * @param subject what is not valid, to begin the message with
 * @param root    what the empty path is called
 * @param faults  at least one
 */
export function describeFaults(subject: string, root: string, faults: readonly Fault[]): string {
  const lineOf = (fault: Fault) => `${fault.path === '' ? root : fault.path}: ${fault.message}`;
  if (faults.length === 1) return `${subject} is not valid. ${lineOf(faults[0])}`;
  const lines = faults.slice(0, LISTED_FAULTS).map((fault) => `  - ${lineOf(fault)}`);
  if (faults.length > LISTED_FAULTS) lines.push(`  … and ${faults.length - LISTED_FAULTS} more`);
  return `${subject} is not valid, ${faults.length} faults:\n${lines.join('\n')}`;
}
