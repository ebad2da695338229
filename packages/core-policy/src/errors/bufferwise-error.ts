const MARK = Symbol.for('bufferwise.error');

/**
 * The base of every error that a Bufferwise package throws.
 *
 * Callers branch on `code`, which is stable within a major version; the message may improve at any time.
 * What throws has changed nothing.
 */
export class BufferwiseError extends Error {
  readonly code: string;
  readonly [MARK] = true;

  constructor(code: string, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
  }

  /** Whether `error` is a Bufferwise error, also one of another installed copy of this package. */
  static isInstance(error: unknown): error is BufferwiseError {
    return typeof error === 'object' && error !== null && (error as Record<symbol, unknown>)[MARK] === true;
  }
}
