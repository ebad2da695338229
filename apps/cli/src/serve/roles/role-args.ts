import type { WorkerRole } from '@bufferwise/adapter-disaggregation/nats-control';
import { UsageError } from '../../cli-error.ts';
import { duration, wholeNumber } from '../../input/arguments.ts';
import { type ClusterKeys, readClusterKeys } from './cluster-keys.ts';
import { type NatsServer, parseNatsUrl } from './nats-url.ts';

/** The flags of a server that works with others. */
export const ROLE_ARGS = {
  role: {
    type: 'string',
    description: 'What it does of a request: read prompts for others, answer, or both',
    valueHint: 'prefill|decode|both',
    default: 'both',
  },
  nats: {
    type: 'string',
    description: 'NATS server over which workers of one model find each other, [USER:PASSWORD@]HOST:PORT; else it works alone',
    valueHint: 'URL',
  },
  'cluster-key': {
    type: 'string',
    description: 'File with the secret that all workers share, 16 bytes or more',
    valueHint: 'FILE',
  },
  pages: {
    type: 'string',
    description: 'Where prompts arrive that others have read; port 0 takes any that is free. Default 127.0.0.1:0',
    valueHint: 'HOST:PORT',
  },
  'pages-as': {
    type: 'string',
    description: 'Where others reach --pages, if not under that very address',
    valueHint: 'HOST:PORT',
  },
  'prefill-from': {
    type: 'string',
    description: 'Tokens of a prompt beyond the cache from which on another worker reads it. Default 256',
    valueHint: 'N',
  },
  'prefill-timeout': {
    type: 'string',
    description: 'Time after which a prompt that did not arrive is read here. Default 30s',
    valueHint: 'TIME',
  },
} as const;

const ROLES: readonly string[] = ['prefill', 'decode', 'both'];
const NEEDING_NATS = ['cluster-key', 'pages', 'pages-as', 'prefill-from', 'prefill-timeout'] as const;
/** Of one that answers. */
const NEEDING_ANSWERS = ['pages', 'pages-as', 'prefill-from', 'prefill-timeout'] as const;
const HOUR_MS = 3_600_000;

/** How a server works with others. */
export interface ClusterChoice {
  readonly role: WorkerRole;
  readonly nats: NatsServer;
  readonly keys: ClusterKeys;
  /** Where pages are listened for. */
  readonly pages: string;
  /** Where others reach that; null for the address that is listened on. */
  readonly pagesAs: string | null;
  readonly prefillFrom: number;
  readonly prefillMs: number;
}

type Given = { readonly role: string } & { readonly [Name in 'nats' | (typeof NEEDING_NATS)[number]]?: string };

/**
 * What the flags say, and where they say nothing `BUFFERWISE_NATS` and `BUFFERWISE_CLUSTER_KEY` of the environment, which no list of processes shows.
 *
 * @returns null for a server that works alone
 * @throws {UsageError} on flags that mean nothing together; {CliError} when the key cannot be read
 */
export async function clusterChoice(given: Given, env: NodeJS.ProcessEnv): Promise<ClusterChoice | null> {
  const { role } = given;
  if (!ROLES.includes(role)) throw new UsageError(`--role is ${JSON.stringify(role)}; it must be prefill, decode or both`);
  const url = given.nats ?? env.BUFFERWISE_NATS;
  if (url === undefined) {
    if (role !== 'both') throw new UsageError(`--role ${role} works with others: give --nats, where it finds them`);
    const lonely = NEEDING_NATS.find((name) => given[name] !== undefined);
    if (lonely !== undefined) throw new UsageError(`--${lonely} is for a server that works with others: give --nats, too`);
    return null;
  }
  const idle = role === 'prefill' ? NEEDING_ANSWERS.find((name) => given[name] !== undefined) : undefined;
  if (idle !== undefined)
    throw new UsageError(
      `--${idle} is for a server that answers, and one with --role prefill reads prompts for those: leave it out`,
    );
  const pages = hostAndPort('pages', given.pages ?? '127.0.0.1:0');
  const pagesAs = given['pages-as'] === undefined ? null : hostAndPort('pages-as', given['pages-as']);
  if (pagesAs === null && /^(0\.0\.0\.0|\[::\]):/.test(pages))
    throw new UsageError(`--pages ${pages} is no address that others can connect to: say with --pages-as which one is`);
  return {
    role: role as WorkerRole,
    nats: parseNatsUrl(url),
    keys: await readClusterKeys(given['cluster-key'], env.BUFFERWISE_CLUSTER_KEY),
    pages,
    pagesAs,
    prefillFrom: wholeNumber('prefill-from', given['prefill-from'] ?? '256', { min: 1, max: 2 ** 31 }),
    prefillMs: duration('prefill-timeout', given['prefill-timeout'] ?? '30s', { max: HOUR_MS }),
  };
}

/** What is to be said of a choice that works, though perhaps not as it was meant; null where there is nothing. */
export function doubtOf({ role, nats, pages, pagesAs }: ClusterChoice): string | null {
  const address = pagesAs ?? pages;
  if (role === 'prefill' || isLoopback(nats.servers) || !isLoopback(address)) return null;
  return `prompts that others have read arrive at ${address}, where only this machine can send them: give --pages an address that the others reach`;
}

function isLoopback(address: string): boolean {
  return /^(localhost|127\.\d+\.\d+\.\d+|\[::1\]):/.test(address);
}

function hostAndPort(name: string, text: string): string {
  const [, port] = /^(?:\[[^\]]+\]|[^:[\]/]+):(\d{1,5})$/.exec(text) ?? [];
  if (port !== undefined && Number(port) < 65_536) return text;
  throw new UsageError(`--${name} is ${JSON.stringify(text)}; write HOST:PORT, or [HOST]:PORT for IPv6`);
}
