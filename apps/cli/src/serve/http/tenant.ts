import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { ApiKeys, Tenant } from './api-keys.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Whether a route answers without a key. */
    isOpen?: boolean;
  }
}

const tenants = new WeakMap<FastifyRequest, Tenant>();

/** Asks every request for its key, before its body is read. */
export function requireKeys(app: FastifyInstance, keys: ApiKeys): void {
  app.addHook('onRequest', async (request) => {
    if (request.routeOptions.config.isOpen === true) return;
    tenants.set(request, keys.tenantOf(request.headers.authorization));
  });
}

/** Who sent a request that was let through. */
export function tenantOf(request: FastifyRequest): Tenant {
  return tenants.get(request) as Tenant;
}
