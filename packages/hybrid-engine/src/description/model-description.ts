import type { AttentionDescription } from './attention.ts';
import type { FeedForwardDescription } from './feed-forward.ts';
import type { Mamba2Description } from './mamba2.ts';

/** Architectures that can be described: those of GGUF files by their names there, and that of the demo model. */
export type ModelArchitecture = 'llama' | 'olmo2' | 'gemma3' | 'mamba2' | 'granitehybrid' | 'whaler';

/**
 * One layer: a mixer, then a feed-forward network where there is one. Each is a branch of the residual stream:
 * `x += residualScale × normAfter(branch(normBefore(x)))`.
 */
export interface LayerDescription {
  readonly mixer: AttentionDescription | Mamba2Description;
  readonly feedForward?: FeedForwardDescription;
  /** Whether an RMS norm stands before each branch. */
  readonly normBefore: boolean;
  /** Whether one stands behind each branch. */
  readonly normAfter: boolean;
}

/**
 * What a model computes, in numbers: all that somebody needs to build its layers, apart from the weights. Tensors have the
 * names and shapes of `describeTensors`.
 */
export interface ModelDescription {
  readonly architecture: ModelArchitecture;
  readonly vocabSize: number;
  /** Values of the residual stream. */
  readonly width: number;
  /** Tokens that the model was trained on at once; undefined when nobody says. */
  readonly contextLength?: number;
  /** Added to the mean square in every norm. Weights of norms are used as they are stored. */
  readonly normEps: number;
  /** What a row of the embedding is multiplied by. */
  readonly embeddingScale: number;
  /** What a branch is multiplied by before it is added. */
  readonly residualScale: number;
  /** What logits are multiplied by. */
  readonly logitScale: number;
  /** Whether logits come from the embedding matrix instead of one of their own. */
  readonly tiedOutput: boolean;
  readonly layers: readonly LayerDescription[];
}
