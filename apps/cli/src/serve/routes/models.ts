import type { FastifyInstance } from 'fastify';
import { ApiError } from '../http/api-error.ts';

export interface ModelCard {
  readonly id: string;
  /** Tokens of prompt and answer that fit. */
  readonly contextLength: number;
}

/** `GET /v1/models`, and of one of them. */
export function models(app: FastifyInstance, { id, contextLength }: ModelCard): void {
  const created = Math.floor(Date.now() / 1000);
  const card = { id, object: 'model', created, owned_by: 'bufferwise', max_model_len: contextLength };
  app.get('/v1/models', async () => ({ object: 'list', data: [card] }));
  app.get<{ Params: { model: string } }>('/v1/models/:model', async ({ params }) => {
    if (params.model === id) return card;
    const message = `the model ${JSON.stringify(params.model)} does not exist here; this server has ${JSON.stringify(id)}`;
    throw new ApiError(message, { status: 404, code: 'model_not_found', param: 'model' });
  });
}
