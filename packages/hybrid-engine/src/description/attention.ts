import type { RotaryDescription } from './rotary.ts';

/**
 * Causal attention with grouped heads: query head h reads key and value head `floor(h × numKvHeads / numHeads)`. Biases of the
 * projections come first, then norms of queries and keys, then the turn by position.
 */
export interface AttentionDescription {
  readonly kind: 'attention';
  readonly numHeads: number;
  /** Divides `numHeads`. */
  readonly numKvHeads: number;
  readonly headDim: number;
  /** Tokens that a query sees, itself included; undefined = all. */
  readonly windowSize?: number;
  /** First tokens of the sequence that stay visible in spite of the window. Default 0. */
  readonly numSinkTokens?: number;
  /** What the product of query and key is multiplied by. */
  readonly scale: number;
  /** Undefined = positions are not told. */
  readonly rotary?: RotaryDescription;
  /** RMS norm of queries and keys: over all heads as one row, over each head, or none. */
  readonly queryKeyNorm: 'row' | 'head' | 'none';
  /** Whether query, key and value projections have biases. */
  readonly hasInputBias: boolean;
  /** Whether the output projection has one. */
  readonly hasOutputBias: boolean;
}
