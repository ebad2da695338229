/** Bundlers for browsers put something in place of what only Node has, so asking for it does not tell. */
export function isNode(): boolean {
  const { process } = globalThis as { process?: { versions?: { node?: string } } };
  return process?.versions?.node !== undefined;
}
