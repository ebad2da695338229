const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
const STEP = 1024;

/**
 * A number of bytes as a person reads it, in the largest unit of which there is at least one, to two decimals.
 *
 * @example formatBytes(24576)   // '24 KiB'
 */
export function formatBytes(bytes: number): string {
  const { value, unit } = inLargestUnit(bytes);
  return `${formatCount(hundredths(value))} ${unit}`;
}

/** The same where nothing has to be rounded, else all bytes: for numbers that are held against each other. */
export function formatExactBytes(bytes: number): string {
  const { value } = inLargestUnit(bytes);
  return hundredths(value) === value ? formatBytes(bytes) : `${formatCount(bytes)} B`;
}

/** A count with commas between thousands, in every locale. */
export function formatCount(count: number): string {
  const [whole, decimals] = String(count).split('.');
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ',');
  return decimals === undefined ? grouped : `${grouped}.${decimals}`;
}

/** A count with the word for what is counted. */
export function formatCounted(count: number, one: string, many = `${one}s`): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}

/** Rounded before it is compared, so that 1024 KiB is never printed for a byte less than 1 MiB. */
function inLargestUnit(bytes: number): { value: number; unit: string } {
  let value = bytes;
  let unit = 0;
  while (hundredths(value) >= STEP && unit < UNITS.length - 1) {
    value /= STEP;
    unit++;
  }
  return { value, unit: UNITS[unit] };
}

function hundredths(value: number): number {
  return Math.round(value * 100) / 100;
}
