import type { FastifyInstance, FastifyReply } from 'fastify';
import { UsageError } from '../../cli-error.ts';

/** Seconds for which a browser need not ask again whether it may ask. */
const ANSWER_HOLDS_S = 600;
/** Names of headers, as a browser lists those that a page wants to send. */
const HEADER_NAMES = /^[\w\-, ]{1,1024}$/;

/**
 * Origins whose pages may use the server, as `--cors-origin` lists them.
 *
 * @throws {UsageError} on what is no origin
 */
export function parseOrigins(text: string): readonly string[] {
  const origins = text.split(',').map((each) => each.trim());
  for (const origin of origins) {
    if (origin === '*' || (URL.canParse(origin) && new URL(origin).origin === origin)) continue;
    throw new UsageError(
      `--cors-origin has ${JSON.stringify(origin)}; it takes origins between commas, as https://chat.example:8443, or * for all`,
    );
  }
  return origins;
}

/**
 * Lets pages of these origins use the server, and answers the question that browsers ask first, which has no key. To be called before a key is asked for.
 *
 * Headers are put on the response below the framework's reply, where streams of answers have them, too.
 */
export function allowOrigins(app: FastifyInstance, origins: readonly string[]): void {
  if (origins.length === 0) return;
  const isForAll = origins.includes('*');
  app.addHook('onRequest', async ({ method, headers }, reply) => {
    if (!isForAll) reply.raw.setHeader('vary', 'origin');
    const { origin } = headers;
    if (origin === undefined || !(isForAll || origins.includes(origin))) return;
    reply.raw.setHeader('access-control-allow-origin', isForAll ? '*' : origin);
    reply.raw.setHeader('access-control-expose-headers', 'retry-after');
    if (method === 'OPTIONS' && headers['access-control-request-method'] !== undefined)
      return permit(reply, headers['access-control-request-headers']);
  });
}

function permit(reply: FastifyReply, wanted: string | undefined): FastifyReply {
  const headers = wanted !== undefined && HEADER_NAMES.test(wanted) ? wanted : 'authorization, content-type';
  return reply
    .code(204)
    .headers({
      'access-control-allow-methods': 'GET, POST',
      'access-control-allow-headers': headers,
      'access-control-max-age': String(ANSWER_HOLDS_S),
    })
    .send();
}
