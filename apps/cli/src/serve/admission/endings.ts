/** Why a request ends early whose client has closed the connection. */
export class ClientLeftError extends Error {
  override readonly name = 'ClientLeftError';

  constructor() {
    super('the client has left');
  }
}

/** Why a request ends early whose reader takes nothing any more. */
export class StalledReaderError extends Error {
  override readonly name = 'StalledReaderError';

  constructor(stallMs: number) {
    super(`the reader took nothing for ${stallMs} ms`);
  }
}

/** Why a request ends that was still under way when the server had waited long enough. */
export class DrainedError extends Error {
  override readonly name = 'DrainedError';

  constructor() {
    super('the server stopped before the answer was done');
  }
}

/** Whether an error only says that nobody is there to be answered. */
export function isGone(error: unknown): boolean {
  return error instanceof ClientLeftError || error instanceof StalledReaderError;
}
