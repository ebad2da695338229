import type { IncomingHttpHeaders } from 'node:http';
import { type Attributes, context, propagation, type Span, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { isGone } from '../admission/endings.ts';
import type { AnswerOrder } from '../answer/answer-order.ts';
import type { PromptOutcome } from '../answer/answer-prompt.ts';
import { toApiError } from '../http/error-reply.ts';

/** What a span says of a request from its beginning on. */
export interface AskedSpan {
  readonly operation: 'chat' | 'text_completion';
  readonly model: string;
  readonly order: AnswerOrder;
  readonly numPrompts: number;
  /** Of the request: a trace that the client has begun goes on. */
  readonly headers: IncomingHttpHeaders;
}

/**
 * One request in a trace of OpenTelemetry, in the words of its conventions for generative AI (`gen_ai.*`). Texts, tokens and keys are in none of it.
 * Nothing is recorded, and nothing costs anything, unless the process was started with an SDK: `node --import ./tracing.js`.
 */
export class AnswerSpan {
  readonly #span: Span;
  #spoke = false;

  constructor({ operation, model, order, numPrompts, headers }: AskedSpan) {
    const { sampling, maxTokens, numAnswers, stream } = order;
    const attributes: Attributes = {
      'gen_ai.operation.name': operation,
      'gen_ai.system': 'bufferwise',
      'gen_ai.request.model': model,
      'gen_ai.request.choice.count': numPrompts * numAnswers,
      'gen_ai.request.max_tokens': maxTokens ?? undefined,
      'gen_ai.request.temperature': sampling.temperature,
      'gen_ai.request.top_p': sampling.topP,
      'gen_ai.request.seed': sampling.seed,
      'bufferwise.request.stream': stream,
    };
    const parent = propagation.extract(context.active(), headers);
    this.#span = trace.getTracer('bufferwise').startSpan(`${operation} ${model}`, { kind: SpanKind.SERVER, attributes }, parent);
  }

  /** Told of every piece; the first one is an event. */
  spoke(): void {
    if (this.#spoke) return;
    this.#spoke = true;
    this.#span.addEvent('gen_ai.first_token');
  }

  answered(outcomes: readonly PromptOutcome[]): void {
    const sum = (count: (outcome: PromptOutcome) => number) => outcomes.reduce((total, each) => total + count(each), 0);
    this.#span.setAttributes({
      'gen_ai.response.finish_reasons': outcomes.flatMap(({ finishReasons }) => finishReasons),
      'gen_ai.usage.input_tokens': sum(({ promptTokens }) => promptTokens),
      'gen_ai.usage.output_tokens': sum(({ completionTokens }) => completionTokens),
      'bufferwise.usage.cached_tokens': sum(({ cachedTokens }) => cachedTokens),
    });
  }

  /** Says why there is no whole answer. Only what the server is to blame for counts as an error, as of HTTP. */
  failed(error: unknown): void {
    if (isGone(error)) {
      this.#span.setAttribute('error.type', (error as Error).name);
      return;
    }
    const { status, code, message } = toApiError(error);
    this.#span.setAttributes({ 'http.response.status_code': status, 'error.type': code ?? String(status) });
    if (status >= 500) this.#span.setStatus({ code: SpanStatusCode.ERROR, message });
  }

  end(): void {
    this.#span.end();
  }
}
