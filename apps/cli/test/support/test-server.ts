import { fileURLToPath } from 'node:url';
import { HybridEngine, type HybridEngineOptions } from '@bufferwise/hybrid-engine';
import { requestTestDevice } from '@bufferwise-internal/webgpu-node/testing';
import OpenAI from 'openai';
import { expect, vi } from 'vitest';
import { ApiKeys } from '../../src/serve/http/api-keys.ts';
import { readServedModel, type ServedModel } from '../../src/serve/model/served-model.ts';
import { type AnswerServer, openServer, type ServerOptions } from '../../src/serve/server.ts';

const repository = (path: string) => fileURLToPath(new URL(`../../../../${path}`, import.meta.url));

export const WHALER = repository('models/whaler-1m');
/** The smallest models: every byte is a token, and what they say is noise. */
export const LLAMA = repository('internal/test-kit/oracle-models/llama-103.gguf');
export const GRANITE = repository('internal/test-kit/oracle-models/granitehybrid-101.gguf');

export const LIMITS: ServerOptions['limits'] = {
  maxActive: 8,
  maxQueue: 8,
  maxBodyBytes: 2 ** 20,
  requestMs: 30_000,
  stallMs: 30_000,
};

export interface TestServerOptions {
  /** Path of a model. Default: the demo model. */
  readonly model?: string;
  readonly limits?: Partial<ServerOptions['limits']>;
  readonly keys?: readonly string[];
  readonly engine?: Partial<HybridEngineOptions>;
  readonly defaultMaxTokens?: number;
  /** Whether answers may be longer than the model was trained for. */
  readonly ignoresContextLength?: boolean;
}

/** A server that really listens, with its engine and a client of it. */
export interface TestServer {
  readonly url: string;
  readonly model: ServedModel;
  readonly engine: HybridEngine;
  readonly server: AnswerServer;
  readonly client: OpenAI;
  /** Errors that were bugs. */
  readonly bugs: readonly unknown[];
  post(path: string, body: unknown, init?: RequestInit): Promise<Response>;
  get(path: string): Promise<Response>;
  /** Expects that no request is under way and that none holds a page, once what is ending has ended. */
  expectIdle(): Promise<void>;
  close(): Promise<void>;
}

let device: Promise<GPUDevice> | undefined;

export async function startTestServer(options: TestServerOptions = {}): Promise<TestServer> {
  device ??= requestTestDevice();
  const read = await readServedModel(options.model ?? WHALER);
  const model = options.ignoresContextLength ? { ...read, contextLength: null } : read;
  const limits = { ...LIMITS, ...options.limits };
  const bugs: unknown[] = [];
  const engine = await HybridEngine.create({
    model: model.engineModel,
    device: await device,
    chunkTokens: 64,
    maxActive: limits.maxActive,
    ...options.engine,
  });
  const server = await openServer(
    {
      engine,
      model,
      keys: new ApiKeys(options.keys ?? []),
      limits,
      defaultMaxTokens: options.defaultMaxTokens ?? 64,
      onBug: (error) => bugs.push(error),
    },
    { host: '127.0.0.1', port: 0 },
  );
  const { url } = server;
  const key = options.keys?.[0];
  const headers = { 'content-type': 'application/json', ...(key !== undefined && { authorization: `Bearer ${key}` }) };
  return {
    url,
    model,
    engine,
    server,
    bugs,
    client: new OpenAI({ baseURL: `${url}/v1`, apiKey: key ?? 'none', maxRetries: 0 }),
    post: (path, body, init = {}) =>
      fetch(`${url}${path}`, {
        method: 'POST',
        headers,
        body: typeof body === 'string' || body instanceof Uint8Array ? (body as BodyInit) : JSON.stringify(body),
        ...init,
      }),
    get: (path) => fetch(`${url}${path}`, { headers }),
    async expectIdle() {
      await vi.waitFor(
        () => {
          expect(engine.load).toEqual({ active: 0, waiting: 0 });
          expect(engine.manager.inspect().requests).toEqual([]);
        },
        { timeout: 120_000, interval: 20 },
      );
      expect(engine.manager.inspect().pages.filter(({ holds }) => holds > 0)).toEqual([]);
      expect(bugs).toEqual([]);
    },
    async close() {
      await server.close();
      await engine.close();
    },
  };
}
