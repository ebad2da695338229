/** The well-known disposal symbol, also where the platform lacks it: `using` calls the method of this name. */
export const DISPOSE: typeof Symbol.dispose = Symbol.dispose ?? (Symbol.for('Symbol.dispose') as typeof Symbol.dispose);
