import { BufferwiseError } from '@bufferwise/core-policy';

/** A page store was given options with which it could never work. */
export class StoreOptionsError extends BufferwiseError {
  declare readonly code: 'store-options';

  /** @param message which store and option, what was wrong, and the way out */
  constructor(message: string) {
    super('store-options', message);
  }
}

/**
 * @param store for the message
 * @param options by name; each must be a whole number from 1 on
 * @throws {StoreOptionsError} when one is none
 */
export function checkCounts(store: string, options: Readonly<Record<string, number>>): void {
  for (const [name, value] of Object.entries(options)) {
    if (Number.isSafeInteger(value) && value >= 1) continue;
    throw new StoreOptionsError(`${store}: ${name} is ${value}; pass a whole number from 1 on, or leave it out`);
  }
}
