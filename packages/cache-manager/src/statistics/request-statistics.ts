/** What requests came to, over some time. */
export interface RequestStatistics {
  /** Requests that were resumed for the first time. A `resume` that says false counts nothing, however often it is tried. */
  readonly started: number;
  /** Resumes after a suspension. */
  readonly resumed: number;
  readonly suspended: number;
  /** Of those that started, the ones opened on a prompt. */
  readonly lookups: number;
  /** Tokens of these prompts. */
  readonly promptTokens: number;
  /** Of these tokens, those that matched. */
  readonly hitTokens: number;
  /** `hitTokens / promptTokens`, 0 without a prompt. */
  readonly hitRate: number;
}
