import { randomUUID } from 'node:crypto';
import type { HybridEngine } from '@bufferwise/hybrid-engine';
import type { FastifyReply } from 'fastify';
import type { Admission, Ticket } from './admission/admission.ts';
import { ClientLeftError, isGone } from './admission/endings.ts';
import type { AnswerOrder } from './answer/answer-order.ts';
import { PromptAnswers, type PromptOutcome } from './answer/answer-prompt.ts';
import type { TextPiece } from './answer/answer-text.ts';
import type { PromptTokens } from './chat/chat-prompt.ts';
import { ApiError } from './http/api-error.ts';
import { scopeOf, type Tenant } from './http/api-keys.ts';
import { toApiError } from './http/error-reply.ts';
import { DONE_FRAME, EventStream } from './http/event-stream.ts';
import type { Metrics } from './metrics/metrics.ts';
import type { ServedModel } from './model/served-model.ts';
import type { AnswerFormat } from './reply/answer-format.ts';
import { usageOf } from './reply/usage.ts';
import { AnswerSpan } from './tracing/answer-span.ts';

/** What a route that answers needs. */
export interface Answering {
  readonly engine: Pick<HybridEngine, 'generateSeveral'>;
  readonly model: ServedModel;
  readonly admission: Admission;
  readonly metrics: Metrics;
  /** Tokens of prompt and answer that fit. */
  readonly contextLength: number;
  /** Tokens of an answer for which the request has no number. */
  readonly defaultMaxTokens: number;
  readonly stallMs: number;
  /** Is told errors that are bugs. */
  onBug(error: unknown): void;
}

/** What was asked. */
export interface AskedPrompts {
  readonly order: AnswerOrder;
  readonly numPrompts: number;
  /** Makes tokens of them, once the request is let in. */
  encode(): readonly PromptTokens[];
  /** Where answers end besides what the order says. */
  readonly stops: readonly string[];
  readonly tenant: Tenant;
}

/**
 * Answers prompts over one HTTP reply, as a stream or in one piece. Whatever happens, nothing of the request is under way any more when
 * this settles: the client left, stopped reading, or the server stops.
 *
 * @throws {ApiError} and what the engine throws, as long as nothing was sent
 */
export async function answerOver(
  reply: FastifyReply,
  serving: Answering,
  asked: AskedPrompts,
  format: AnswerFormat,
): Promise<void> {
  const { order, numPrompts } = asked;
  const { headers } = reply.request;
  const span = new AnswerSpan({ operation: format.operation, model: serving.model.id, order, numPrompts, headers });
  try {
    requireModel(serving.model, order.model);
    const ticket = serving.admission.admit(numPrompts * order.numAnswers);
    await answerAdmitted(reply, { serving, asked, ticket, format, span });
  } catch (error) {
    span.failed(error);
    throw error;
  } finally {
    span.end();
  }
}

/** A request that is in, until nothing of it is under way. */
async function answerAdmitted(reply: FastifyReply, admitted: Omit<Work, 'prompts' | 'budgets'>): Promise<void> {
  const { serving, asked, ticket } = admitted;
  const { order } = asked;
  const { socket } = reply.request.raw;
  const onClose = () => ticket.cancel(new ClientLeftError());
  socket.once('close', onClose);
  try {
    // It may have left while its body was read.
    if (socket.destroyed) onClose();
    const prompts = asked.encode();
    const budgets = prompts.map((prompt) => tokenBudget(serving, order, prompt.tokens.length));
    const answer = order.stream ? stream : inOnePiece;
    await answer(reply, { ...admitted, prompts, budgets });
  } finally {
    socket.off('close', onClose);
    ticket.release();
  }
}

interface Work {
  readonly serving: Answering;
  readonly asked: AskedPrompts;
  readonly prompts: readonly PromptTokens[];
  /** Tokens of answers at most, one a prompt. */
  readonly budgets: readonly number[];
  readonly ticket: Ticket;
  readonly format: AnswerFormat;
  readonly span: AnswerSpan;
}

async function inOnePiece(reply: FastifyReply, work: Work): Promise<void> {
  const pieces: TextPiece[][] = Array.from({ length: numChoices(work) }, () => []);
  const outcomes = await readAll(
    begin(work, (choice, piece) => void pieces[choice].push(piece)),
    work.ticket,
  );
  work.span.answered(outcomes);
  const choices = outcomes.flatMap(({ finishReasons }) => finishReasons);
  const body = {
    ...work.format.head(headOf(work)),
    object: work.format.object,
    choices: choices.map((finishReason, index) => work.format.choice(index, joined(pieces[index]), finishReason)),
    usage: usageOf(outcomes),
  };
  await reply.send(body);
}

async function stream(reply: FastifyReply, work: Work): Promise<void> {
  const { serving, ticket, format, asked, span } = work;
  const head = { ...format.head(headOf(work)), object: format.chunkObject };
  const { includeUsage } = asked.order;
  const events = new EventStream(reply.raw, serving.stallMs);
  const send = (choices: readonly object[], usage: object | null = null) =>
    events.send({ ...head, choices, ...(includeUsage && { usage }) });
  // What can never be answered is refused with a status of its own, before the stream begins.
  const answers = begin(work, (index, piece) => send([format.delta(index, piece)]));
  reply.hijack();
  events.open(headersOf(reply));
  try {
    for (let index = 0; index < numChoices(work); index++) {
      const first = format.opening(index);
      if (first !== null) await send([first]);
    }
    const outcomes = await readAll(answers, ticket);
    span.answered(outcomes);
    for (const [index, finishReason] of outcomes.flatMap(({ finishReasons }) => finishReasons).entries()) {
      await send([format.closing(index, finishReason)]);
    }
    if (includeUsage) await send([], usageOf(outcomes));
    await events.end(DONE_FRAME);
  } catch (error) {
    ticket.cancel(error as Error);
    span.failed(error);
    await endWithError(events, serving, error);
  }
}

/** Begins to answer all prompts. Choice i × n + j is answer j to prompt i. */
function begin(
  { serving, asked, prompts, budgets, ticket, span }: Work,
  onPiece: (choice: number, piece: TextPiece) => void | Promise<void>,
): PromptAnswers[] {
  const { order, stops, tenant } = asked;
  return prompts.map(
    (prompt, i) =>
      new PromptAnswers(
        serving.engine,
        serving.model,
        {
          prompt,
          // Random numbers of prompts shall differ as those of answers do.
          order: { ...order, sampling: { ...order.sampling, seed: (order.sampling.seed ?? 0) + i * order.numAnswers } },
          maxTokens: budgets[i],
          stops: [...order.stops, ...stops],
          scope: scopeOf(tenant, order.cacheSalt),
          signal: ticket.signal,
          onPiece(answer, piece) {
            span.spoke();
            return onPiece(i * order.numAnswers + answer, piece);
          },
        },
        serving.metrics,
      ),
  );
}

/** Settles when none of them is under way any more. */
async function readAll(answers: readonly PromptAnswers[], ticket: Ticket): Promise<PromptOutcome[]> {
  const outcomes = await Promise.allSettled(answers.map((each) => each.read(ticket.cancel)));
  const failed = outcomes.find((outcome) => outcome.status === 'rejected');
  // What made the first of them fail, and not that the others were made to end for it.
  if (failed !== undefined) throw ticket.signal.aborted ? ticket.signal.reason : failed.reason;
  return outcomes.map((outcome) => (outcome as PromiseFulfilledResult<PromptOutcome>).value);
}

/** Too late for a status: the stream ends with the error, and without the word that it was all. */
async function endWithError(events: EventStream, serving: Answering, error: unknown): Promise<void> {
  const told = toApiError(error);
  if (told.status === 500 && !isGone(error)) serving.onBug(error);
  await events.send(told.body).catch(() => {});
  await events.end();
}

function numChoices({ asked }: Work): number {
  return asked.numPrompts * asked.order.numAnswers;
}

function headOf({ serving }: Work): { uuid: string; created: number; model: string } {
  return { uuid: randomUUID(), created: Math.floor(Date.now() / 1000), model: serving.model.id };
}

function joined(pieces: readonly TextPiece[]): TextPiece {
  return { text: pieces.map(({ text }) => text).join(''), tokens: pieces.flatMap(({ tokens }) => tokens) };
}

function headersOf(reply: FastifyReply): Record<string, string> {
  return Object.fromEntries(Object.entries(reply.getHeaders()).map(([name, value]) => [name, String(value)]));
}

function requireModel({ id }: ServedModel, asked: string | null): void {
  if (asked === null || asked === id) return;
  const message = `the model ${JSON.stringify(asked)} does not exist here; this server has ${JSON.stringify(id)}`;
  throw new ApiError(message, { status: 404, code: 'model_not_found', param: 'model' });
}

/** How many tokens an answer may have. Throws {ApiError} when prompt and answer do not fit. */
function tokenBudget({ contextLength, defaultMaxTokens }: Answering, { maxTokens }: AnswerOrder, promptTokens: number): number {
  const left = contextLength - promptTokens;
  const wanted = maxTokens ?? Math.min(defaultMaxTokens, left);
  if (left >= 1 && wanted <= left) return wanted;
  const message =
    `prompt and answer may have ${contextLength} tokens together, and the prompt has ${promptTokens}` +
    (maxTokens === null ? '' : `, the answer ${maxTokens}`);
  throw new ApiError(message, { status: 400, code: 'context_length_exceeded', param: 'max_tokens' });
}
