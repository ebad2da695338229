/**
 * The body of a response, unless it is longer than `maxBytes`: of that nothing more is read. Rejects with the reason of the signal, which ends the body:
 * Node's `fetch` does that with its own signal only until the response is collected, and a read would then never settle.
 *
 * @returns null when it is too long
 */
export async function boundedBody(response: Response, maxBytes: number, signal: AbortSignal): Promise<Uint8Array | null> {
  const announced = Number(response.headers.get('content-length') ?? 0);
  if (response.body === null) return new Uint8Array(0);
  if (announced > maxBytes) {
    await response.body.cancel();
    return null;
  }
  const reader = response.body.getReader();
  const giveUp = () => void reader.cancel(signal.reason).catch(() => {});
  signal.addEventListener('abort', giveUp, { once: true });
  if (signal.aborted) giveUp();
  try {
    return await readUpTo(reader, maxBytes, signal);
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
}

async function readUpTo(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Uint8Array | null> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    // A body that was given up ends like any other.
    signal.throwIfAborted();
    if (done) break;
    length += value.length;
    if (length > maxBytes) {
      await reader.cancel();
      return null;
    }
    pieces.push(value);
  }
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}
