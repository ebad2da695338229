/**
 * The body of a response, unless it is longer than `maxBytes`: of that nothing more is read.
 *
 * @returns null when it is too long
 */
export async function boundedBody(response: Response, maxBytes: number): Promise<Uint8Array | null> {
  const announced = Number(response.headers.get('content-length') ?? 0);
  if (response.body === null) return new Uint8Array(0);
  if (announced > maxBytes) {
    await response.body.cancel();
    return null;
  }
  const pieces: Uint8Array[] = [];
  let length = 0;
  const reader = response.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
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
