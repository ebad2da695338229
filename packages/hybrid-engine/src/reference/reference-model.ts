import type { FeedForwardDescription } from '../description/feed-forward.ts';
import type { LayerDescription, ModelDescription } from '../description/model-description.ts';
import { KeyValueHistory } from '../model/key-value-history.ts';
import { ModelError } from '../model/model-error.ts';
import { gelu, silu } from '../model/vector-math.ts';
import { attend } from './attention.ts';
import { Mamba2State, mixMamba2 } from './mamba2.ts';
import { ReferenceWeights } from './weights.ts';

export type OnLayer = (x: Float32Array, layer: number) => void;

/**
 * Any described model in plain TypeScript: what its description means, and the answer that kernels are measured by.
 *
 * One token at a time, with sums in double precision and activations in f32. Keys, values and states are in a `ReferenceState`
 * of the caller, and nothing is kept between calls. Takes 4 bytes for each weight, and is as slow as it is plain.
 */
export class ReferenceModel {
  readonly description: ModelDescription;
  readonly #weights: ReferenceWeights;

  /** @param weights by name, row-major: the tensors of `describeTensors(description)` */
  constructor(description: ModelDescription, weights: ReadonlyMap<string, Float32Array>) {
    this.description = description;
    this.#weights = new ReferenceWeights(weights, description.normEps);
  }

  /** The state of a sequence without tokens. */
  createState(): ReferenceState {
    const { layers } = this.description;
    return new ReferenceState(0, layers.map(emptyMemory));
  }

  /**
   * Appends tokens to a sequence.
   *
   * @param tokens at least one id below `vocabSize`
   * @param state moved on by `tokens.length`
   * @param onLayer sees the residual stream `[width]` behind each layer, token by token; must not change it
   * @returns the logits after the last token, `[vocabSize]`; the array is the caller's
   * @throws {ModelError} `model-input` for no tokens or an id outside of the vocabulary; the state has not moved
   */
  forward(tokens: ArrayLike<number>, state: ReferenceState, onLayer?: OnLayer): Float32Array {
    const { vocabSize, logitScale, tiedOutput } = this.description;
    if (tokens.length === 0) throw new ModelError('model-input', 'A step needs at least one token.');
    for (let i = 0; i < tokens.length; i++) {
      if (!Number.isInteger(tokens[i]) || tokens[i] < 0 || tokens[i] >= vocabSize) {
        throw new ModelError('model-input', `Token ${i} is ${tokens[i]}; the model has the ids 0 to ${vocabSize - 1}.`);
      }
    }
    let x = this.#step(tokens[0], state, onLayer);
    for (let i = 1; i < tokens.length; i++) x = this.#step(tokens[i], state, onLayer);
    const logits = this.#weights.project(tiedOutput ? 'token_embd' : 'output', this.#weights.norm('output_norm', x));
    return logits.map((logit) => logit * logitScale);
  }

  /** One token through all layers: the residual stream behind the last. */
  #step(token: number, state: ReferenceState, onLayer?: OnLayer): Float32Array {
    const { width, embeddingScale, residualScale, layers } = this.description;
    const row = this.#weights.get('token_embd.weight').subarray(token * width, (token + 1) * width);
    const x = row.map((value) => value * embeddingScale);
    const add = (branch: Float32Array) => {
      for (let i = 0; i < width; i++) x[i] += residualScale * branch[i];
    };
    layers.forEach(({ mixer, feedForward, normBefore, normAfter }, index) => {
      const prefix = `blk.${index}`;
      const normed = (name: string, values: Float32Array, stands: boolean) =>
        stands ? this.#weights.norm(`${prefix}.${name}`, values) : values;
      const memory = state.layers[index];
      const h = normed('attn_norm', x, normBefore);
      const mixed =
        mixer.kind === 'attention'
          ? attend(mixer, prefix, this.#weights, h, memory as KeyValueHistory, state.numTokens)
          : mixMamba2(mixer, prefix, this.#weights, h, memory as Mamba2State);
      add(normed('post_attention_norm', mixed, normAfter));
      if (feedForward !== undefined) {
        const fed = this.#feedForward(feedForward, prefix, normed('ffn_norm', x, normBefore));
        add(normed('post_ffw_norm', fed, normAfter));
      }
      onLayer?.(x, index);
    });
    state.numTokens++;
    return x;
  }

  #feedForward({ activation, hasBias }: FeedForwardDescription, prefix: string, x: Float32Array): Float32Array {
    const activate = activation === 'silu' ? silu : gelu;
    const up = this.#weights.project(`${prefix}.ffn_up`, x, hasBias);
    const gate = this.#weights.project(`${prefix}.ffn_gate`, x, hasBias);
    return this.#weights.project(
      `${prefix}.ffn_down`,
      gate.map((value, i) => activate(value) * up[i]),
      hasBias,
    );
  }
}

/** What one sequence has left in a model: keys and values of every token, or the recurrent state after the last one. */
export class ReferenceState {
  /** Tokens taken in so far: the position of the next one. */
  numTokens: number;
  /** One a layer: `KeyValueHistory` for attention, `Mamba2State` for Mamba-2. */
  readonly layers: readonly (KeyValueHistory | Mamba2State)[];

  constructor(numTokens: number, layers: readonly (KeyValueHistory | Mamba2State)[]) {
    this.numTokens = numTokens;
    this.layers = layers;
  }

  /** One that goes on alone from here: two answers to one beginning. */
  clone(): ReferenceState {
    return new ReferenceState(
      this.numTokens,
      this.layers.map((memory) => memory.clone()),
    );
  }
}

function emptyMemory({ mixer }: LayerDescription): KeyValueHistory | Mamba2State {
  return mixer.kind === 'attention' ? new KeyValueHistory(mixer.numKvHeads * mixer.headDim) : Mamba2State.empty(mixer);
}
