import type { FastifyInstance } from 'fastify';
import type { Admission } from '../admission/admission.ts';
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
  app.get('/inspect', async () => ({
    model: model.id,
    requests: admission.numRequests,
    answers: { admitted: admission.numAnswers, ...engine.load },
    engine: { costs: engine.costs, preemptions: engine.preemptions, outside: engine.outside },
    statistics: engine.statistics(),
    storage: engine.storage(),
    cache: engine.manager.inspect({ tokens: false }),
    ...(cluster !== undefined && { cluster: cluster.inspect() }),
  }));
}
