/** The Castagnoli polynomial, reflected. */
const POLYNOMIAL = 0x82f63b78;
const SLICES = 8;

/** Entry `slice * 256 + byte`: what the byte does to the sum from `slice` bytes further ahead. */
const TABLE = buildTable();

/**
 * CRC-32C of some bytes, as an unsigned 32-bit number. Eight bytes a turn.
 *
 * @param before CRC-32C of the bytes in front of these, when they come in pieces
 * @example crc32c(tail, crc32c(head)) // of the two, one behind the other
 */
export function crc32c(bytes: Uint8Array, before = 0): number {
  const table = TABLE;
  const wholeEnd = bytes.length - (bytes.length % SLICES);
  let sum = ~before;
  let at = 0;
  for (; at < wholeEnd; at += SLICES) {
    const low = sum ^ (bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24));
    sum =
      table[1792 + (low & 255)] ^
      table[1536 + ((low >>> 8) & 255)] ^
      table[1280 + ((low >>> 16) & 255)] ^
      table[1024 + (low >>> 24)] ^
      table[768 + bytes[at + 4]] ^
      table[512 + bytes[at + 5]] ^
      table[256 + bytes[at + 6]] ^
      table[bytes[at + 7]];
  }
  for (; at < bytes.length; at++) sum = (sum >>> 8) ^ table[(sum ^ bytes[at]) & 255];
  return ~sum >>> 0;
}

function buildTable(): Int32Array {
  const table = new Int32Array(SLICES * 256);
  for (let byte = 0; byte < 256; byte++) {
    let sum = byte;
    for (let bit = 0; bit < 8; bit++) sum = sum & 1 ? (sum >>> 1) ^ POLYNOMIAL : sum >>> 1;
    table[byte] = sum;
  }
  for (let entry = 256; entry < table.length; entry++) {
    const before = table[entry - 256];
    table[entry] = (before >>> 8) ^ table[before & 255];
  }
  return table;
}
