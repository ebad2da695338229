/** Bytes that are inflated at a time: what comes out of them beyond a limit, a thousand times as much at most, is all that a bomb gets. */
const STEP_BYTES = 4096;

/** More than this of a byte is no deflate: its best is 1032. */
const MAX_GROWTH = 1100;

/** Deflates bytes, without a header (RFC 1951). */
export async function deflate(bytes: Uint8Array): Promise<Uint8Array> {
  const stream = new Blob([bytes as Uint8Array<ArrayBuffer>]).stream().pipeThrough(new CompressionStream('deflate-raw'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Inflates bytes that must become exactly `length` bytes; null when they do not, found out before much more than that is in memory. */
export async function inflate(bytes: Uint8Array, length: number): Promise<Uint8Array | null> {
  if (length > MAX_GROWTH * bytes.length) return null;
  const { readable, writable } = new DecompressionStream('deflate-raw');
  const reader = readable.getReader();
  const writer = writable.getWriter();
  const feeding = feed(writer, bytes);
  const inflated = new Uint8Array(length);
  let at = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return at === length && (await feeding) ? inflated : null;
      if (at + value.length > length) return null;
      inflated.set(value, at);
      at += value.length;
    }
  } catch {
    // Not deflated, or not to its end.
    return null;
  } finally {
    await reader.cancel().catch(() => {});
    await feeding;
  }
}

/** Whether all of it was taken. */
async function feed(writer: WritableStreamDefaultWriter<BufferSource>, bytes: Uint8Array): Promise<boolean> {
  try {
    for (let i = 0; i < bytes.length; i += STEP_BYTES)
      await writer.write(bytes.subarray(i, i + STEP_BYTES) as Uint8Array<ArrayBuffer>);
    await writer.close();
    return true;
  } catch {
    return false;
  }
}
