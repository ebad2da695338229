const MARK = Symbol.for('bufferwise.error');

/**
 * The base of every error that a Bufferwise package throws.
 *
 * Callers branch on `code`, which is stable within a major version; the message may improve at any time.
 * What throws has changed nothing.
 */
export class BufferwiseError extends Error {
  /** Stable kebab-case name of the reason. */
  readonly code: string;

  /**
   * @param code stable kebab-case name of the reason
   * @param message what was wrong, where, and the way out
   * @param options `cause`, when another error is the reason
   */
  constructor(code: string, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
    // Kept out of the type and of listings: it is for isInstance alone.
    Object.defineProperty(this, MARK, { value: true });
  }

  /** Whether `error` is a Bufferwise error, also one of another installed copy of this package. */
  static isInstance(error: unknown): error is BufferwiseError {
    return typeof error === 'object' && error !== null && (error as Record<symbol, unknown>)[MARK] === true;
  }
}
