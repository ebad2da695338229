import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import fastify, { type FastifyHttpOptions, type FastifyInstance } from 'fastify';
import { isGone } from '../admission/endings.ts';
import { ApiError } from './api-error.ts';
import type { Certificate } from './certificate.ts';
import { allowOrigins } from './cross-origin.ts';
import { toApiError } from './error-reply.ts';
import { cutOffStalled } from './event-stream.ts';
import { parseJsonBody } from './json-body.ts';

export interface HttpLimits {
  /** Bytes of a request's body. */
  readonly maxBodyBytes: number;
  /** Connections at a time; more are closed at once. */
  readonly maxConnections: number;
  /** Milliseconds from the first byte of a request to its last. */
  readonly requestMs: number;
  /** Milliseconds that a reader may take nothing. */
  readonly stallMs: number;
}

export interface AppOptions {
  readonly limits: HttpLimits;
  /** Left out: it speaks HTTP without TLS. */
  readonly certificate?: Certificate;
  /** Origins whose pages may use it, `*` for all. Left out: pages of no other origin may. */
  readonly origins?: readonly string[];
  /** Is told errors that are bugs. */
  onBug(error: unknown): void;
  onReply(route: string, status: number): void;
}

const MAX_HEADER_BYTES = 16 * 2 ** 10;
const KEEP_ALIVE_MS = 5_000;
/** Who is late is found within this share of the time that it had. */
const CHECKS_A_TIMEOUT = 4;
const MAX_CHECK_MS = 5_000;

/** An HTTP server without routes: bounded in what it takes, and every error in OpenAI's form. */
export function openApp({ limits, certificate, origins = [], onBug, onReply }: AppOptions): FastifyInstance {
  const { requestMs, stallMs } = limits;
  const server = {
    headersTimeout: requestMs,
    connectionsCheckingInterval: Math.min(requestMs / CHECKS_A_TIMEOUT, MAX_CHECK_MS),
    maxHeaderSize: MAX_HEADER_BYTES,
  };
  const app = fastify({
    bodyLimit: limits.maxBodyBytes,
    requestTimeout: requestMs,
    keepAliveTimeout: KEEP_ALIVE_MS,
    forceCloseConnections: true,
    ...(certificate === undefined ? { http: server } : { https: { ...server, ...certificate } }),
    routerOptions: { maxParamLength: 1024 },
    clientErrorHandler: refuseUnreadable,
    frameworkErrors: (error, _, reply) => void sendError(reply as ErrorReply, toApiError(error)),
  } as FastifyHttpOptions<Server>) as FastifyInstance;
  app.server.maxConnections = limits.maxConnections;
  // Requests that come one behind the other on one connection all listen for its end.
  app.server.on(certificate === undefined ? 'connection' : 'secureConnection', (socket: Socket) => socket.setMaxListeners(0));
  allowOrigins(app, origins);

  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, async (_: unknown, bytes: Buffer) => parseJsonBody(bytes));

  const methods = new Map<string, Set<string>>();
  app.addHook('onRoute', ({ url, method }) => {
    const known = methods.get(url) ?? new Set<string>();
    for (const each of [method].flat()) known.add(each);
    methods.set(url, known);
  });
  app.setNotFoundHandler((request, reply) => {
    const path = request.url.split('?')[0];
    const allowed = methods.get(path);
    if (allowed !== undefined) reply.header('allow', [...allowed].join(', '));
    const error =
      allowed === undefined
        ? new ApiError(`there is no ${request.method} ${path} here`, { status: 404, code: 'unknown_url' })
        : new ApiError(`${path} takes ${[...allowed].join(' and ')}, and not ${request.method}`, {
            status: 405,
            code: 'method_not_allowed',
          });
    void sendError(reply, error);
  });
  app.setErrorHandler((error, _, reply) => {
    // Nobody is there to be told.
    if (isGone(error)) {
      reply.hijack();
      reply.raw.destroy();
      return;
    }
    const told = toApiError(error);
    if (told.status === 500) onBug(error);
    void sendError(reply, told);
  });
  app.addHook('onSend', async (_, reply) => cutOffStalled(reply.raw, stallMs));
  app.addHook('onResponse', async ({ routeOptions }, reply) => onReply(routeOptions.url ?? 'unknown', reply.statusCode));
  return app;
}

/** What an error is sent through. */
interface ErrorReply {
  code(status: number): unknown;
  header(name: string, value: string): unknown;
  send(body: unknown): unknown;
}

function sendError(reply: ErrorReply, error: ApiError): unknown {
  reply.code(error.status);
  if (error.retryAfter !== undefined) reply.header('retry-after', String(error.retryAfter));
  if (error.status === 401) reply.header('www-authenticate', 'Bearer');
  return reply.send(error.body);
}

/** What never became a request: too slow, too long, or not HTTP. */
function refuseUnreadable(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const [status, told] = unreadable(error.code);
  const body = JSON.stringify(told.body);
  const head = [
    `HTTP/1.1 ${status}`,
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
}

function unreadable(code: string | undefined): readonly [string, ApiError] {
  switch (code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return [
        '408 Request Timeout',
        new ApiError('the request took too long to arrive', { status: 408, code: 'request_timeout' }),
      ];
    case 'HPE_HEADER_OVERFLOW':
      return [
        '431 Request Header Fields Too Large',
        new ApiError('the headers are too long', { status: 431, code: 'headers_too_large' }),
      ];
    default:
      return ['400 Bad Request', new ApiError('this is no HTTP request', { status: 400, code: 'bad_request' })];
  }
}
