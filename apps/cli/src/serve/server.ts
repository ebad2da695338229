import type { AddressInfo } from 'node:net';
import type { HybridEngine } from '@bufferwise/hybrid-engine';
import type { FastifyInstance } from 'fastify';
import type { PrefixStore } from '../input/prefix-store.ts';
import { Admission, type AdmissionLimits } from './admission/admission.ts';
import { DrainedError } from './admission/endings.ts';
import type { AnswerEngine } from './answer/answer-prompt.ts';
import type { ApiKeys } from './http/api-keys.ts';
import type { Certificate } from './http/certificate.ts';
import { type HttpLimits, openApp } from './http/open-app.ts';
import { requireKeys } from './http/tenant.ts';
import { type MeasuredEngine, Metrics } from './metrics/metrics.ts';
import type { ServedModel } from './model/served-model.ts';
import type { ClusterPart } from './roles/cluster-part.ts';
import { chatCompletions } from './routes/chat-completions.ts';
import { completions } from './routes/completions.ts';
import { models } from './routes/models.ts';
import { operations } from './routes/operations.ts';
import { tokens } from './routes/tokens.ts';

export interface ServerOptions {
  /** Stays the caller's, who closes it after the server. */
  readonly engine: MeasuredEngine & Pick<HybridEngine, 'generateSeveral'>;
  /** What answers. Default the engine; null for a server that answers nothing, and tells only how it is. */
  readonly answers?: AnswerEngine | null;
  /** What it does together with others. */
  readonly cluster?: ClusterPart;
  readonly model: ServedModel;
  readonly keys: ApiKeys;
  /** As of `AppOptions`. */
  readonly certificate?: Certificate;
  readonly origins?: readonly string[];
  readonly limits: Omit<HttpLimits, 'maxConnections'> & AdmissionLimits;
  /** Tokens of an answer for which a request has no number. */
  readonly defaultMaxTokens: number;
  readonly storeStatistics?: PrefixStore['statistics'];
  /** Is told errors that are bugs. */
  onBug(error: unknown): void;
}

/** A server that listens. */
export interface AnswerServer {
  /** `http://HOST:PORT`, or `https`, without a slash at its end. */
  readonly url: string;
  /**
   * Takes no more requests, which are refused with 503, and waits for those that it has. After `timeoutMs` they are made to end.
   *
   * @returns how many were made to end
   */
  drain(timeoutMs: number): Promise<number>;
  /** Closes all connections. Requests under way end. Does nothing the second time. */
  close(): Promise<void>;
}

/** Connections that may be open besides those of requests that are in: for operators, and for those that are told to try again. */
const MORE_CONNECTIONS = 256;

/**
 * Listens for requests to one model on one engine.
 *
 * @throws what Node says of an address that cannot be listened on
 */
export async function openServer(options: ServerOptions, at: { host: string; port: number }): Promise<AnswerServer> {
  const { engine, model, limits, onBug, cluster, answers = engine } = options;
  const admission = new Admission(limits);
  const metrics = new Metrics({ engine, admission, storeStatistics: options.storeStatistics ?? null });
  cluster?.measure(metrics.registry);
  const app = openApp({
    limits: { ...limits, maxConnections: limits.maxActive + limits.maxQueue + MORE_CONNECTIONS },
    certificate: options.certificate,
    origins: options.origins,
    onBug,
    onReply: (route, status) => metrics.onRequest(route, status),
  });
  requireKeys(app, options.keys);
  if (answers !== null) answerRoutes(app, answers, { options, admission, metrics });
  operations(app, { engine, model, admission, metrics, cluster });
  await app.listen(at);
  return {
    url: urlOf(app.server.address() as AddressInfo, options.certificate === undefined ? 'http' : 'https'),
    drain: (timeoutMs) => drain(admission, timeoutMs),
    async close() {
      admission.cancelAll(new DrainedError());
      await app.close();
      await admission.drain();
    },
  };
}

/** What OpenAI's interface has. */
function answerRoutes(
  app: FastifyInstance,
  engine: AnswerEngine,
  { options, admission, metrics }: { options: ServerOptions; admission: Admission; metrics: Metrics },
): void {
  const { model, limits, defaultMaxTokens, onBug } = options;
  const contextLength = contextLengthOf(options.engine, model);
  const { stallMs } = limits;
  const serving = { engine, model, admission, metrics, contextLength, defaultMaxTokens, stallMs, onBug };
  completions(app, serving);
  chatCompletions(app, serving);
  models(app, { id: model.id, contextLength });
  tokens(app, model, contextLength);
}

async function drain(admission: Admission, timeoutMs: number): Promise<number> {
  let numCut = 0;
  const timer = setTimeout(() => {
    numCut = admission.cancelAll(new DrainedError());
  }, timeoutMs);
  await admission.drain();
  clearTimeout(timer);
  return numCut;
}

/** What the cache has room for, as far as the model was trained for it. The last token of an answer needs no room. */
function contextLengthOf({ manager }: MeasuredEngine, { contextLength }: ServedModel): number {
  const room = manager.clampSequenceLength(contextLength ?? 2 ** 31) + 1;
  return Math.min(room, contextLength ?? room);
}

function urlOf({ address, port, family }: AddressInfo, scheme: string): string {
  return `${scheme}://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}
