/**
 * The characters that stand for bytes in the vocabulary of a byte-level tokenizer: index = byte. Printable Latin-1 stands
 * for itself; the other bytes take the code points from 256 on, in order.
 */
export const BYTE_ALPHABET: readonly string[] = Array.from({ length: 256 }, (_, byte) => {
  const stand = printable(byte) ? byte : 256 + countUnprintableBelow(byte);
  return String.fromCharCode(stand);
});

const BYTE_BY_CHARACTER = new Map(BYTE_ALPHABET.map((character, byte) => [character, byte]));

/** The bytes that a vocabulary entry stands for, or null when it holds a character outside of the alphabet. */
export function bytesOfToken(token: string): Uint8Array | null {
  const bytes = new Uint8Array(token.length);
  for (let i = 0; i < token.length; i++) {
    const byte = BYTE_BY_CHARACTER.get(token[i]);
    if (byte === undefined) return null;
    bytes[i] = byte;
  }
  return bytes;
}

function printable(byte: number): boolean {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

function countUnprintableBelow(byte: number): number {
  let count = 0;
  for (let b = 0; b < byte; b++) if (!printable(b)) count++;
  return count;
}
