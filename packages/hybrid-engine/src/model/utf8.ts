/** The platform's UTF-8 decoder: Node and browsers have it, the ES library does not declare it. */
export interface Utf8Decoder {
  /** With `stream`, the bytes of an unfinished character stay inside until the next call. */
  decode(bytes?: Uint8Array, options?: { stream?: boolean }): string;
}

type Utf8DecoderClass = new (label: 'utf-8', options: { fatal: boolean; ignoreBOM: boolean }) => Utf8Decoder;

const { TextDecoder, TextEncoder } = globalThis as unknown as {
  TextDecoder: Utf8DecoderClass;
  TextEncoder: new () => { encode(text: string): Uint8Array };
};

/** A decoder that writes U+FFFD for bytes that are not UTF-8 and keeps a byte order mark as a character. */
export function lenientUtf8Decoder(): Utf8Decoder {
  return new TextDecoder('utf-8', { fatal: false, ignoreBOM: true });
}

/**
 * The text of `bytes`.
 *
 * @throws {TypeError} when they are not UTF-8
 */
export function decodeUtf8(bytes: Uint8Array): string {
  return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
}

/** The UTF-8 bytes of `text`. Half a surrogate pair becomes U+FFFD. */
export function encodeUtf8(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
