/** Two words out of two: every bit of both counts, and neither can take the other's place. Exact on every machine. */
export function mix(a: number, b: number): number {
  let word = Math.imul(a ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(b + 0x7f4a7c15, 0xc2b2ae35);
  word = Math.imul(word ^ (word >>> 15), 0x2c1b3c6d);
  word = Math.imul(word ^ (word >>> 12), 0x297a2d39);
  return (word ^ (word >>> 15)) >>> 0;
}

/** A word out of a text. */
export function mixText(text: string): number {
  let word = text.length;
  for (let i = 0; i < text.length; i++) word = mix(word, text.charCodeAt(i));
  return word;
}
