/** The mark by which `BufferwiseError.isInstance` of core-policy knows the errors of every Bufferwise package. */
const MARK = Symbol.for('bufferwise.error');

/**
 * Base of the errors of this package: the outside (device, driver, memory) failed, or a kernel was handed something it
 * cannot run on.
 *
 * It bears the mark of `BufferwiseError` instead of extending the class, because this package imports no other at run time:
 * `BufferwiseError.isInstance(error)` is true, `code` is stable within a major version, and what throws has changed nothing.
 */
export class GpuError extends Error {
  readonly code: string;
  readonly [MARK] = true;

  constructor(code: string, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
  }
}
