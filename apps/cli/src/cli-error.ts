/** Something the person at the terminal can mend. Printed as one line; the process ends with code 1. */
export class CliError extends Error {
  override readonly name: string = 'CliError';
}

/** A command line that says something else than it can mean. Ends with code 2. */
export class UsageError extends CliError {
  override readonly name = 'UsageError';
}
