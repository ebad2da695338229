/** `down(activation(gate x) × (up x))`. */
export interface FeedForwardDescription {
  readonly hidden: number;
  /** `gelu` is the tanh approximation: 0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³))). */
  readonly activation: 'silu' | 'gelu';
  /** Whether the three projections have biases. */
  readonly hasBias: boolean;
}
