import type { KvCache } from '@bufferwise/cache-manager';
import type { BeamAnswer, BeamRequest } from '../engine/beam-search.ts';
import type { SequenceChunk } from '../engine/gpu-model.ts';
import { mostLikely } from '../sampling/most-likely.ts';
import { GenerationTask, type TaskHost } from './generation-task.ts';

/** One continuation of the prompt. */
interface Beam {
  readonly tokens: readonly number[];
  /** Sum of the natural logarithms of its tokens' probabilities. */
  readonly logProbability: number;
}

/** A beam of the next step, if it is good enough. */
interface Candidate extends Beam {
  /** The beam of the last step that it continues. */
  readonly parent: number;
  readonly finishReason: BeamAnswer['finishReason'] | null;
}

/**
 * Beam search: several continuations side by side, in the beams of one request, which share all full blocks. After each step every beam goes
 * on from one of the best of the last one.
 */
export class BeamTask extends GenerationTask {
  readonly #search: BeamRequest;
  /** Done: ended by a stop token, or by their length. */
  readonly #answers: BeamAnswer[] = [];
  #beams: readonly Beam[] = [];
  /** For each beam the one of the last step that it goes on from; null when the pages are in that order already. */
  #parents: readonly number[] | null = null;
  /** The pages that were branched into the beams. */
  #branched: KvCache | null = null;
  /** Tokens of each beam in the step that was prepared. */
  #stepTokens = 0;
  #waiting: (() => void) | null = null;

  constructor(host: TaskHost, request: BeamRequest, arrival: number) {
    super(host, request, arrival);
    this.#search = request;
  }

  get wanted(): boolean {
    return !this.ended;
  }

  /** The answers, best first, once the search has ended. Throws what it failed with. */
  async answers(): Promise<BeamAnswer[]> {
    if (!this.ended) {
      await new Promise<void>((resolve) => {
        this.#waiting = resolve;
        this.ask();
      });
    }
    this.throwIfFailed();
    return this.#answers;
  }

  override get decoding(): boolean {
    return this.#searching ? this.#pendingOfBeam === 1 : super.decoding;
  }

  override nextTokens(most: number): number {
    if (!this.#searching) return super.nextTokens(most);
    const numTokens = this.#beams.length * Math.min(this.#pendingOfBeam, this.host.chunkTokens);
    return numTokens <= most ? numTokens : this.#beams.length * Math.floor(most / this.#beams.length);
  }

  override prepare(numTokens: number): boolean {
    if (!this.#searching) return super.prepare(numTokens);
    const { cache } = this;
    // Pages that were given up and filled anew hold the prompt and no beams: all of them begin from there.
    if (cache === this.#branched && this.#parents !== null && !cache.reorderBeams(this.#parents)) return false;
    this.#parents = null;
    if (cache.beamWidth < this.#beams.length && !cache.forkBeams(this.#beams.length)) return false;
    this.#branched = cache;
    const start = cache.historyLength;
    this.#stepTokens = numTokens / this.#beams.length;
    return cache.resize(start + this.#stepTokens, start);
  }

  override chunks(): readonly SequenceChunk[] {
    if (!this.#searching) return super.chunks().map((chunk) => (this.#beams.length > 0 ? { ...chunk, logits: 'none' } : chunk));
    const { cache } = this;
    const start = cache.historyLength;
    const at = start - this.promptLength;
    const logits = this.#stepTokens === this.#pendingOfBeam ? 'last' : 'none';
    return this.#beams.map(({ tokens }, beam) => {
      return { cache, beam, tokens: Uint32Array.from(tokens.slice(at, at + this.#stepTokens)), start, logits };
    });
  }

  override submitted(): void {
    if (this.#searching) this.cache.resize(null, this.cache.historyLength + this.#stepTokens);
    else super.submitted();
  }

  accept(rows: readonly (readonly Float32Array[])[]): void {
    if (rows.every((logits) => logits.length === 0)) return;
    const beams = this.#beams.length === 0 ? [{ tokens: [], logProbability: 0 }] : this.#beams;
    const candidates = beams.flatMap((beam, parent) => this.#continuations(beam, parent, rows[parent][0]));
    candidates.sort((a, b) => b.logProbability - a.logProbability);
    const next: Candidate[] = [];
    for (const candidate of candidates) {
      if (next.length === this.#search.beamWidth) break;
      if (candidate.finishReason === null) next.push(candidate);
      else this.#keep(candidate, candidate.finishReason);
    }
    this.#beams = next;
    this.#parents = next.map(({ parent }) => parent);
    if (next.length === 0 || this.#cannotImprove(next[0])) this.end();
  }

  protected onEnd(): void {
    this.#answers.sort((a, b) => this.#score(b) - this.#score(a));
    this.#answers.length = Math.min(this.#answers.length, this.#search.beamWidth);
    this.#waiting?.();
    this.#waiting = null;
  }

  /** Whether the prompt is behind it and beams go on. */
  get #searching(): boolean {
    return this.#beams.length > 0 && this.cache.historyLength >= this.promptLength;
  }

  /** Tokens of each beam that the pages do not hold yet. */
  get #pendingOfBeam(): number {
    return this.promptLength + this.#beams[0].tokens.length - this.cache.historyLength;
  }

  /** The most likely next tokens of a beam: as many as could all be chosen, and one for each stop token that may be among them. */
  #continuations(beam: Beam, parent: number, logits: Float32Array): Candidate[] {
    const { beamWidth, stopTokens = [], maxNewTokens } = this.#search;
    return mostLikely(logits, beamWidth + stopTokens.length).map(({ token, logProbability }) => {
      const tokens = [...beam.tokens, token];
      const ends = tokens.length === maxNewTokens ? 'length' : null;
      return {
        tokens,
        parent,
        logProbability: beam.logProbability + logProbability,
        finishReason: stopTokens.includes(token) ? 'stop' : ends,
      };
    });
  }

  #keep({ tokens, logProbability }: Candidate, finishReason: BeamAnswer['finishReason']): void {
    this.#answers.push({ tokens, logProbability, finishReason });
  }

  /** Whether there are enough answers, and the best beam is worse than all of them as it is. */
  #cannotImprove(best: Candidate): boolean {
    const { beamWidth } = this.#search;
    if (this.#answers.length < beamWidth) return false;
    const scores = this.#answers.map((answer) => this.#score(answer)).sort((a, b) => b - a);
    return scores[beamWidth - 1] >= this.#score(best);
  }

  #score({ tokens, logProbability }: Pick<BeamAnswer, 'tokens' | 'logProbability'>): number {
    return logProbability / tokens.length ** (this.#search.lengthPenalty ?? 1);
  }
}
