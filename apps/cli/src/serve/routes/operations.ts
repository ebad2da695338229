import type { FastifyInstance } from 'fastify';
import type { Admission } from '../admission/admission.ts';
import { inspectPage } from '../inspect/inspect-page.ts';
import { prefersHtml } from '../inspect/prefers-html.ts';
import type { MeasuredEngine, Metrics } from '../metrics/metrics.ts';
import type { ServedModel } from '../model/served-model.ts';
import type { ClusterPart } from '../roles/cluster-part.ts';

export interface Operations {
  readonly engine: MeasuredEngine;
  readonly model: ServedModel;
  readonly admission: Admission;
  readonly metrics: Metrics;
  readonly cluster?: ClusterPart;
}

/** The page has its styles in it, and needs nothing else. */
const PAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'";

/** What who runs the server asks: `GET /health`, `/metrics`, `/inspect`. */
export function operations(app: FastifyInstance, { engine, model, admission, metrics, cluster }: Operations): void {
  app.get('/health', { config: { isOpen: true } }, async (_, reply) => {
    const { draining, numRequests, numAnswers } = admission;
    // Whoever sends requests here shall send them elsewhere from now on.
    if (draining) reply.code(503);
    return { status: draining ? 'draining' : 'ready', model: model.id, requests: numRequests, answers: numAnswers };
  });
  app.get('/metrics', async (_, reply) => {
    reply.type(metrics.contentType);
    return metrics.text();
  });
  // Tokens of prompts are nobody's business: keys keep tenants apart, and this route knows no tenant.
  const inspection = () => ({
    model: model.id,
    requests: admission.numRequests,
    answers: { admitted: admission.numAnswers, ...engine.load },
    engine: { costs: engine.costs, preemptions: engine.preemptions, outside: engine.outside },
    statistics: engine.statistics(),
    storage: engine.storage(),
    cache: engine.manager.inspect({ tokens: false }),
    ...(cluster !== undefined && { cluster: cluster.inspect() }),
  });
  app.get('/inspect', async ({ headers }, reply) => {
    reply.raw.appendHeader('vary', 'accept');
    if (!prefersHtml(headers.accept)) return inspection();
    reply.type('text/html; charset=utf-8').header('content-security-policy', PAGE_POLICY);
    return inspectPage(inspection());
  });
}
