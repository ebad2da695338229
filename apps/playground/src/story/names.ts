/** Hues that the style sheet has. */
const NUM_HUES = 8;

/** What people call a conversation: A … Z, then A2 … */
export function conversationName(id: number): string {
  const letter = String.fromCharCode(65 + (id % 26));
  return id < 26 ? letter : `${letter}${Math.floor(id / 26) + 1}`;
}

/** Its colour, as the style sheet has it. Groups take the hues from 0 on, conversations those from 4 on: few of both are told apart. */
export function conversationHue(id: number): string {
  return `var(--hue-${conversationHueIndex(id)})`;
}

export function conversationHueIndex(id: number): number {
  return (id + 4) % NUM_HUES;
}

/** The colour of a group. */
export function groupHue(id: number): string {
  return `var(--hue-${id % NUM_HUES})`;
}

/** `1 page`, `2 pages`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString('en')} ${count === 1 ? one : many}`;
}

/** Bytes for people, in binary units. */
export function bytesText(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  const kib = bytes / 1024;
  return kib < 1024 ? `${trimmed(kib)} KiB` : `${trimmed(kib / 1024)} MiB`;
}

/** Names in a row: `a`, `a and b`, `a, b and c`. */
export function listed(names: readonly string[]): string {
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names[names.length - 1]}`;
}

/** A whole number for people. */
export function plain(value: number): string {
  return value.toLocaleString('en');
}

export function percentText(share: number): string {
  return `${Math.round(100 * share)}%`;
}

function trimmed(value: number): string {
  return value >= 100 ? String(Math.round(value)) : value.toFixed(1).replace(/\.0$/, '');
}
