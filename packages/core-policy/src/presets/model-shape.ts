/*
 * What a model keeps while it reads a sequence, before anyone has said how long it is worth keeping. Families make shapes;
 * `layer-stack.ts` turns a shape into layers.
 */

/** A part of an attention layer's memory that grows by one row a token. */
export interface TokenRow {
  readonly role: string;
  /** Bytes that one token adds. */
  readonly bytes: number;
}

/** A part of a recurrent layer's memory that has one size whatever was read. */
export interface StateBuffer {
  readonly role: string;
  readonly bytes: number;
}

/** Memory of a run of tokens. */
export interface AttentionPart {
  readonly kind: 'attention';
  /** Index of the layer in the model, as its weights are numbered. */
  readonly modelLayer: number;
  readonly part: 'attention' | 'indexer';
  readonly rows: readonly TokenRow[];
  /** Tokens that a query sees, itself included; undefined = all. */
  readonly windowSize?: number;
  readonly sparsityGroup?: string;
}

/** The part of an attention layer without a window. */
export function fullAttentionPart(modelLayer: number, rows: readonly TokenRow[]): AttentionPart {
  return { kind: 'attention', part: 'attention', modelLayer, rows };
}

/** Memory of everything that was read, folded into a state. */
export interface RecurrentPart {
  readonly kind: 'recurrent';
  /** Index of the layer in the model, as its weights are numbered. */
  readonly modelLayer: number;
  readonly part: 'mamba1' | 'mamba2' | 'gated-delta-net';
  readonly states: readonly StateBuffer[];
  /** What one token adds to a ring of inputs from which the state can be computed again. Empty = no engine keeps one. */
  readonly replayRows: readonly TokenRow[];
}

/** One of the things that a model layer remembers by. */
export type LayerPart = AttentionPart | RecurrentPart;

/** What a model keeps. */
export interface ModelShape {
  /** Layers of the model, also those that keep nothing. */
  readonly numModelLayers: number;
  /** In the order of the model; the parts of one layer stand together. */
  readonly parts: readonly LayerPart[];
  /** What a reader of the layers should know, in sentences. */
  readonly notes: readonly string[];
}

/** Bytes of one value of each kind of buffer, as the engine stores them. */
export interface ValueBytes {
  readonly kv: number;
  readonly state: number;
  readonly conv: number;
  /** Bytes of an index key of so many values, scales included. */
  indexKey(numValues: number): number;
}
