import type { ParamLayout } from './params.ts';

/** The WGSL struct that `packParams` lays out, so that a kernel states its parameters once. */
export function paramText(layout: ParamLayout): string {
  const fields = Object.entries(layout).map(([name, type]) => `  ${name}: ${type},`);
  return ['struct Params {', ...fields, '}'].join('\n');
}
