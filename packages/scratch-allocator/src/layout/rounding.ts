/** The smallest multiple of `step` that is not below `value`. */
export function roundUp(value: number, step: number): number {
  const rest = value % step;
  return rest === 0 ? value : value - rest + step;
}

/** The nearest integer; halves go to the even neighbour, so that no side gains by its place in a list. */
export function roundHalfEven(value: number): number {
  const below = Math.floor(value);
  const part = value - below;
  if (part === 0.5) return below % 2 === 0 ? below : below + 1;
  return part < 0.5 ? below : below + 1;
}
