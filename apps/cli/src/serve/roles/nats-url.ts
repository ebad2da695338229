import { UsageError } from '../../cli-error.ts';

/** Where NATS is, and who connects to it. */
export interface NatsServer {
  /** `HOST:PORT`: what may be printed. */
  readonly servers: string;
  readonly user?: string;
  readonly pass?: string;
  readonly token?: string;
  /** Set where the connection must be encrypted. */
  readonly tls?: object;
}

const DEFAULT_PORT = 4222;

/**
 * Reads `nats://[USER:PASSWORD@]HOST[:PORT]`, `nats://TOKEN@HOST`, or `tls://…` where the connection must be encrypted; the scheme may be left out.
 *
 * @throws {UsageError} which does not repeat what was given: there may be a password in it
 */
export function parseNatsUrl(text: string): NatsServer {
  const withScheme = text.includes('://') ? text : `nats://${text}`;
  const url = URL.canParse(withScheme) ? new URL(withScheme) : undefined;
  if (url === undefined || !['nats:', 'tls:'].includes(url.protocol) || url.hostname === '' || !/^\/?$/.test(restOf(url)))
    throw new UsageError('--nats takes nats://HOST:PORT, nats://USER:PASSWORD@HOST:PORT, or the same with tls://');
  const [user, pass] = [decoded(url.username), decoded(url.password)];
  return {
    servers: `${url.hostname}:${url.port === '' ? DEFAULT_PORT : url.port}`,
    ...(pass !== '' && { user, pass }),
    ...(pass === '' && user !== '' && { token: user }),
    ...(url.protocol === 'tls:' && { tls: {} }),
  };
}

function restOf({ pathname, search, hash }: URL): string {
  return pathname + search + hash;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
