import type { GroupReuseStatus, PoolMemory } from '@bufferwise/cache-manager';
import type { LayerConfig, LayerGroupId } from '@bufferwise/core-policy';
import type { StorageLayout } from '@bufferwise/scratch-allocator';
import type { Plugin } from '../plugin.ts';
import type { StepPages } from './step-pages.ts';

/** What layouts and requests a consumer can do with. */
export interface ConsumerSupports {
  /** The buffers of a layer may be in several groups, each with an index table of its own. */
  readonly splitBuffers: boolean;
  /** Blocks of a prefill step may be scratch: gone when the step ends. */
  readonly scratch: boolean;
  /** A scratch block of a layer may begin in one slot and end in the next. */
  readonly crossingScratch: boolean;
  /** A sequence may continue inside a block that others share up to there. */
  readonly partialBlocks: boolean;
  /** It keeps recurrent state, and continues from a snapshot of it. */
  readonly snapshots: boolean;
  /** Given tokens again that were matched, it fills groups that were not reused. */
  readonly replay: boolean;
  /**
   * A step may begin before tokens that an earlier one wrote: those were drafts, and are forgotten. A consumer may ask for `sequence`
   * and `snapshot: false` in the requests of such steps.
   */
  readonly rewind: boolean;
  /** Several beams of a request may be rows of a step. */
  readonly beams: boolean;
}

/** How a request that matched a prefix begins. */
export interface ReplayPlan {
  /** Complete optional groups that it uses as they are: for `KvCache.resume`. */
  readonly optionalReuseGroups: readonly LayerGroupId[];
  /** Optional groups whose live history it computes again, before the first commit: for `KvCache.resume`. */
  readonly rebuiltGroups: readonly LayerGroupId[];
  /** The first token that its first step must hold again, 0 … the match. The match itself when nothing is computed again. */
  readonly from: number;
}

/** One row of a step: a request, or a beam of one. */
export interface StepRequest {
  /** Position of the first token of the step. In the first step after a match the plan's `from`, later what is written. */
  readonly start: number;
  /** Tokens of the step, at least 1. */
  readonly numTokens: number;
  /** Tokens that were matched. Those of the step before this position are given again. */
  readonly matched: number;
  /** Groups whose pages hold what was matched. They are shared: for tokens before `matched` they must not be written. */
  readonly reusedGroups: ReadonlySet<LayerGroupId>;
  /**
   * The same object in every step of a request, its `KvCache` for example: what a consumer that must remember more of a request than
   * its pages hold knows it by. Beams of a request have it in common. Left out, nothing is remembered.
   */
  readonly sequence?: object;
  /**
   * `false`: no commit takes a snapshot behind this step, as in `KvCache.commit`, so that recurrent state may lag behind in its page.
   * Left out, one may.
   */
  readonly snapshot?: boolean;
}

/** Where the pages of a step are, and what it computes. Valid until the step has been recorded. */
export interface ConsumerStep {
  readonly requests: readonly StepRequest[];
  /** Index tables: row i belongs to request i. Scratch is in them already. */
  readonly pages: StepPages;
  /** The memory that the indices of a buffer count in. Another one after a tier was resized or a device lost: ask in every step. */
  poolMemory(layerId: number, role: string): PoolMemory;
}

/** What is known of a manager before there is one. */
export interface BindOptions {
  /** The manager may give scratch for prefill steps. Default false. */
  readonly scratch?: boolean;
}

/**
 * A part of a model that keeps what it remembers in pages: an attention or a recurrent layer, or all of them.
 *
 * It says which buffers it has (`layers`), and reads and writes them through index tables, one for each buffer, as policies differ
 * by buffer. It owns no page and holds no index from one step to the next. All methods are synchronous: work for a GPU is recorded,
 * and whoever drives the step submits it.
 *
 * Order of calls: `bind` once, before any page memory exists; for each request `planReplay`; for each step `record`; `close`.
 *
 * @typeParam Work what a step carries besides pages: the recorder of commands, activations in, activations out
 */
export interface ConsumerAdapter<Work = unknown> extends Plugin<ConsumerSupports> {
  /** The buffers it keeps, with their policies: part of the config of the manager. Sizes in bytes, as in the config. */
  readonly layers: readonly LayerConfig[];
  /**
   * Takes note of where its buffers lie. May be called again, for another layout.
   *
   * @throws {AdapterError} `layout-refused`, or {AmbiguousLayerError}, for a layout it cannot read, with the reason; nothing has changed
   *   then. {AdapterError} `plugin-closed`
   */
  bind(layout: StorageLayout, options?: BindOptions): void;
  /** How a request begins whose groups can supply so much. Asked before its first `resume`; changes nothing. */
  planReplay(reuseStatus: readonly GroupReuseStatus[], matched: number): ReplayPlan;
  /**
   * Computes a step, or records it: writes the pages of its tokens, and reads those before. Pages are written layer by layer for all
   * requests, as layers may share scratch.
   *
   * @throws {AdapterError} `step-refused` before `bind`, and on a step it cannot do; nothing was recorded then. `plugin-closed`
   */
  record(step: ConsumerStep, work: Work): void;
  /** Gives back what it made. Does nothing the second time. */
  close(): void;
}
