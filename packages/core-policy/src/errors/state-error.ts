import { BufferwiseError } from './bufferwise-error.ts';

/** A call in the wrong state, or with lengths that do not fit the state. Nothing has changed. */
export class StateError extends BufferwiseError {
  /**
   * @param code stable kebab-case name of the reason
   * @param message what was wrong, in which state, and the way out
   */
  constructor(code: string, message: string, options?: { cause?: unknown }) {
    super(code, message, options);
  }
}
