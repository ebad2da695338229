/** Something the person at the terminal can mend. Printed as one line; the process ends with code 1. */
export class CliError extends Error {
  override readonly name = 'CliError';
}
