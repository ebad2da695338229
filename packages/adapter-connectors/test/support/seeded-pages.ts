/** A generator of numbers in [0, 1) that gives the same ones for the same seed. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let z = state;
    z = Math.imul(z ^ (z >>> 15), z | 1);
    z ^= z + Math.imul(z ^ (z >>> 7), z | 61);
    return ((z ^ (z >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** 2 to 40 kB, or as many as are asked for, that only this key has. */
export function pageOf(key: string, length?: number): Uint8Array {
  let seed = 7;
  for (const letter of key) seed = Math.imul(seed, 31) + letter.charCodeAt(0);
  const random = seeded(seed);
  const usual = 2000 + Math.floor(random() * 38_000);
  const page = new Uint8Array(length ?? usual);
  for (let i = 0; i < page.length; i++) page[i] = (random() * 256) | 0;
  return page;
}

export function isPageOf(key: string, page: Uint8Array | null, length?: number): boolean {
  const expected = pageOf(key, length);
  return page !== null && page.length === expected.length && expected.every((byte, i) => page[i] === byte);
}
