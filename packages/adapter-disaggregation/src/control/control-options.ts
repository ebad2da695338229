import type { NatsConnection } from '@nats-io/nats-core';
import { type Clock, systemClock } from '../clock.ts';
import type { TransferLayout } from '../transfer/transfer-layout.ts';
import { ControlError } from './control-error.ts';
import { isId } from './control-message.ts';
import { ControlSubjects } from './control-subjects.ts';
import { type ControlTimes, controlTimes } from './control-times.ts';
import { layoutHash, poolOf } from './layout-hash.ts';
import { NatsEndpoint } from './nats-endpoint.ts';

/** What both sides of the control plane take. */
export interface ControlOptions {
  /** Of `connectNats`, or one of your own. It stays the caller's, and open. */
  readonly nats: NatsConnection;
  /** What tells models apart: only those with the same work together. Up to 128 characters. */
  readonly fingerprint: string;
  /** `transferLayout` of the config: only those with the same work together. */
  readonly layout: TransferLayout;
  /** Names it to the others: 1 to 64 letters, digits, `_` or `-`. Default random. */
  readonly id?: string;
  /** In front of all subjects, to have several control planes on one server. Default `bufferwise`. */
  readonly namespace?: string;
  /** Secret that all share, where NATS is not trusted: every message is sealed with it. 16 random bytes or more. */
  readonly key?: Uint8Array;
  /** Sealed messages that are older are refused, by the clocks of both sides. Milliseconds. Default 60 000. */
  readonly mostSkewMs?: number;
  readonly times?: Partial<ControlTimes>;
  readonly clock?: Clock;
  /** Told what goes wrong and concerns no call: messages that were dropped, subjects that may not be used. */
  readonly onTrouble?: (error: unknown) => void;
}

export interface ControlSettings {
  readonly id: string;
  readonly pool: { readonly fingerprint: string; readonly layoutHash: string };
  readonly poolId: string;
  readonly subjects: ControlSubjects;
  readonly times: ControlTimes;
  readonly clock: Clock;
  readonly endpoint: NatsEndpoint;
  readonly onTrouble: (error: unknown) => void;
}

/** Rejects with {ControlError} `invalid-control-options`, {TransferError} `invalid-transport-options` for the key. */
export async function controlSettings(kind: string, options: ControlOptions): Promise<ControlSettings> {
  const { nats, fingerprint, layout, namespace = 'bufferwise', key = null, mostSkewMs = 60_000, clock = systemClock } = options;
  const id = options.id ?? `${kind}-${crypto.randomUUID()}`;
  if (!isId(id))
    throw new ControlError('invalid-control-options', `the id is ${JSON.stringify(id)}; take 1 to 64 letters, digits, _ or -`);
  if (fingerprint.length > 128)
    throw new ControlError('invalid-control-options', `the fingerprint has ${fingerprint.length} characters and 128 is the most`);
  const pool = { fingerprint, layoutHash: await layoutHash(layout) };
  return {
    id,
    pool,
    poolId: await poolOf(pool),
    subjects: new ControlSubjects(namespace),
    times: controlTimes(options.times),
    clock,
    endpoint: new NatsEndpoint({ nats, id, key, mostSkewMs }),
    onTrouble: options.onTrouble ?? (() => {}),
  };
}

/** Calls again and again, until the returned function is called: often enough for the shortest of the times. */
export function ticking(clock: Clock, times: ControlTimes, tick: () => void): () => void {
  const everyMs = Math.max(5, Math.min(...Object.values(times)) / 4);
  let stop = () => {};
  const next = () => {
    stop = clock.after(everyMs, () => {
      next();
      tick();
    });
  };
  next();
  return () => stop();
}
