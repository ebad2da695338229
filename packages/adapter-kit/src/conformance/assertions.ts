/** A promise was not kept: the message says what was expected and what happened. */
export class BrokenPromiseError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'BrokenPromiseError';
  }
}

/** Throws {BrokenPromiseError} with the message unless the condition holds. */
export function ensure(condition: boolean, message: string): asserts condition {
  if (!condition) throw new BrokenPromiseError(message);
}

/** Throws {BrokenPromiseError} unless the two are equal as JSON; typed arrays count as lists. */
export function ensureEqual(actual: unknown, expected: unknown, what: string): void {
  const [found, wanted] = [actual, expected].map((value) => JSON.stringify(value, plain));
  ensure(found === wanted, `${what}: expected ${shortened(wanted)}, got ${shortened(found)}`);
}

/** Throws {BrokenPromiseError} unless the call throws, or rejects, with an error of the code. */
export async function ensureCode(call: () => unknown, code: string, what: string): Promise<void> {
  const error = await failureOf(call, what);
  ensure((error as { code?: unknown } | null)?.code === code, `${what}: expected an error of code ${code}, got ${String(error)}`);
}

/** What a call throws, or rejects with. Throws {BrokenPromiseError} when it does neither. */
export async function failureOf(call: () => unknown, what: string): Promise<unknown> {
  try {
    await call();
  } catch (error) {
    return error;
  }
  throw new BrokenPromiseError(`${what}: expected an error, and there was none`);
}

/** The result of a promise. Throws {BrokenPromiseError} when it does not settle in time. */
export async function settled<T>(promise: Promise<T>, patienceMs: number, what: string): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new BrokenPromiseError(`${what}: nothing happened for ${patienceMs} ms`)), patienceMs);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

function plain(this: Readonly<Record<string, unknown>>, key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return `${value}n`;
  // Not `value`: of a Node `Buffer`, which is a `Uint8Array` too, that is what its `toJSON` made.
  const own = this[key];
  return ArrayBuffer.isView(own) && !(own instanceof DataView) ? Array.from(own as Uint8Array) : value;
}

function shortened(text: string | undefined): string {
  return text === undefined || text.length <= 200 ? String(text) : `${text.slice(0, 200)}… (${text.length} characters)`;
}
