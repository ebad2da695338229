/** A trace that cannot be read. The message names the line and what it lacks. */
export class TraceError extends Error {
  override readonly name = 'TraceError';
}
