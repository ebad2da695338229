import { BufferwiseError } from './bufferwise-error.ts';

/** An id was asked for that the registry did not give out. Code `unknown-lifecycle`. */
export class UnknownLifecycleError extends BufferwiseError {
  /** The id as it was passed. */
  readonly lifecycleId: number;

  constructor(lifecycleId: number, size: number) {
    super(
      'unknown-lifecycle',
      `There is no lifecycle ${String(lifecycleId)}: this registry has ids from 0 up to, not including, ${size}.`,
    );
    this.lifecycleId = lifecycleId;
  }
}
