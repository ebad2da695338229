/** What one check found. `warn`: something optional will not work; `fail`: nothing on the GPU will. */
export interface Finding {
  readonly name: string;
  readonly state: 'ok' | 'warn' | 'fail';
  /** What there is. */
  readonly found: string;
  /** What works with it, or will not work without. */
  readonly means: string;
  /** The way out; null where nothing is wrong. */
  readonly mend: string | null;
}
