/** A value that the test knows to be there. */
export function present<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('the value is missing');
  return value;
}
