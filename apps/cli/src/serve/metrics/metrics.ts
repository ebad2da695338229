import type { GenerationReport, HybridEngine } from '@bufferwise/hybrid-engine';
import { Counter, collectDefaultMetrics, Histogram, Registry } from 'prom-client';
import type { PrefixStore } from '../../input/prefix-store.ts';
import type { Admission } from '../admission/admission.ts';
import type { AnswerObserver } from '../answer/answer-prompt.ts';
import { readCacheFigures } from './cache-figures.ts';
import { readGauge } from './read-gauge.ts';

/** Seconds. */
const LONG_TIMES = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const SHORT_TIMES = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

export interface MeasuredEngine
  extends Pick<HybridEngine, 'load' | 'costs' | 'preemptions' | 'outside' | 'statistics' | 'storage' | 'manager'> {}

export interface MetricsOptions {
  readonly engine: MeasuredEngine;
  readonly admission: Admission;
  /** Counts of the store of prefixes, where there is one. */
  readonly storeStatistics: PrefixStore['statistics'] | null;
}

/** What a server counts, for Prometheus. What the engine counts itself is read when somebody asks. */
export class Metrics implements AnswerObserver {
  /** For those who have figures of their own. */
  readonly registry = new Registry();
  readonly #requests = this.#counter('requests_total', 'Requests by route and HTTP status', ['route', 'status']);
  readonly #answers = this.#counter('answers_total', 'Answers by how they ended', ['finish_reason']);
  readonly #promptTokens = this.#counter('prompt_tokens_total', 'Tokens of prompts', ['from']);
  readonly #recomputed = this.#counter('recomputed_tokens_total', 'Tokens that went through the model once more', []);
  readonly #generated = this.#counter('generated_tokens_total', 'Tokens of answers', []);
  readonly #groupTokens = this.#counter('group_reused_tokens_total', 'Tokens whose pages a group supplied', ['group', 'policy']);
  readonly #firstToken = this.#histogram(
    'time_to_first_token_seconds',
    'From a request to the first token of an answer',
    LONG_TIMES,
  );
  readonly #betweenTokens = this.#histogram('inter_token_seconds', 'Between two tokens of an answer', SHORT_TIMES);
  readonly #duration = this.#histogram('answer_duration_seconds', 'From a request to the last token of an answer', LONG_TIMES);

  constructor({ engine, admission, storeStatistics }: MetricsOptions) {
    collectDefaultMetrics({ register: this.registry });
    const gauge = (name: string, help: string, read: () => number) =>
      readGauge(this.registry, { name, help }, () => [[{}, read()]]);
    gauge('requests_in_flight', 'Requests that were let in', () => admission.numRequests);
    gauge('answers_running', 'Answers whose pages are on the device', () => engine.load.active);
    gauge('answers_waiting', 'Answers that wait for a place on the device', () => engine.load.waiting);
    gauge('draining', '1 while the server takes no more requests', () => (admission.draining ? 1 : 0));
    readCacheFigures(this.registry, engine, storeStatistics);
  }

  get contentType(): string {
    return this.registry.contentType;
  }

  text(): Promise<string> {
    return this.registry.metrics();
  }

  onRequest(route: string, status: number): void {
    this.#requests.inc({ route, status });
  }

  onToken(gapMs: number | null, sinceStartMs: number): void {
    if (gapMs === null) this.#firstToken.observe(sinceStartMs / 1000);
    else this.#betweenTokens.observe(gapMs / 1000);
  }

  onEnd(finishReason: string, report: GenerationReport): void {
    this.#answers.inc({ finish_reason: finishReason });
    this.#promptTokens.inc({ from: 'cache' }, report.reusedTokens);
    this.#promptTokens.inc({ from: 'model' }, report.computedTokens);
    this.#recomputed.inc(report.recomputedTokens);
    this.#generated.inc(report.generatedTokens);
    this.#duration.observe(report.totalMs / 1000);
    for (const { groupId, policy, reusedTokens } of report.groups)
      this.#groupTokens.inc({ group: groupId, policy }, reusedTokens);
  }

  #counter<T extends string>(name: string, help: string, labelNames: readonly T[]): Counter<T> {
    return new Counter({ name: `bufferwise_${name}`, help, labelNames: [...labelNames], registers: [this.registry] });
  }

  #histogram(name: string, help: string, buckets: number[]): Histogram {
    return new Histogram({ name: `bufferwise_${name}`, help, buckets, registers: [this.registry] });
  }
}
