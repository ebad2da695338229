import { managerLayout, TransferReceiver, TransferSender } from '@bufferwise/adapter-disaggregation';
import {
  ControlError,
  ControlRouter,
  type ControlTimes,
  ControlWorker,
  connectNats,
  type Job,
} from '@bufferwise/adapter-disaggregation/nats-control';
import { TcpTransport } from '@bufferwise/adapter-disaggregation/tcp-transport';
import type { PageListener } from '@bufferwise/adapter-kit';
import { type HybridEngine, modelFingerprint } from '@bufferwise/hybrid-engine';
import { connect } from '@nats-io/transport-node';
import type { Registry } from 'prom-client';
import { CliError } from '../../cli-error.ts';
import type { AnswerEngine } from '../answer/answer-prompt.ts';
import { readGauge } from '../metrics/read-gauge.ts';
import { AnswersElsewhereRead } from './answers-elsewhere-read.ts';
import type { ClusterPart } from './cluster-part.ts';
import type { EventRelay } from './event-relay.ts';
import { MoveFigures } from './move-figures.ts';
import { MovedPrompts } from './moved-prompts.ts';
import { PageLinks } from './page-links.ts';
import { PrefillJobs } from './prefill-jobs.ts';
import type { ClusterChoice } from './role-args.ts';

/**
 * The same for all workers. A worker that fell silent is given up early: whoever is left without one can read prompts by itself. Kernels that are
 * compiled for the first time may keep a process from hearing for seconds.
 */
const TIMES: Partial<ControlTimes> = { heartbeatMs: 1_000, expiryMs: 6_000, takeMs: 6_000, noWorkerMs: 1_000 };
/** Why a job is not tried elsewhere lies here, so few tries tell it. */
const MOST_RETRIES = 3;
/** What is said last may have to wait for a server that is away. */
const LAST_WORDS_MS = 2_000;

export interface MemberOptions {
  readonly engine: HybridEngine;
  /** That of the engine: it is told where to, once there is somebody. */
  readonly events: EventRelay;
  /** Jobs of a kind at a time. */
  readonly maxActive: number;
  /** Is told, in a line, what concerns no request: a worker that others cannot hear any more. */
  onTrouble(words: string): void;
}

/** A worker among others of the same model: reads prompts for them, has them read its own, or both. */
export class ClusterMember implements ClusterPart {
  readonly id: string;
  /** What answers: null for one that only reads. */
  readonly answers: AnswerEngine | null;
  /** Settles when others do not hear this one any more though nobody asked it to leave. */
  readonly lost: Promise<void>;
  readonly #parts: Parts;
  #leaving = false;
  #closed: Promise<void> | undefined;

  /** @throws {CliError} when NATS is not there, or pages cannot be listened for */
  static async join(choice: ClusterChoice, options: MemberOptions): Promise<ClusterMember> {
    const ends: (() => unknown)[] = [];
    try {
      return new ClusterMember(choice, options, await openParts(choice, options, ends));
    } catch (error) {
      for (const end of ends.reverse()) await end();
      throw error;
    }
  }

  private constructor(
    { role, prefillFrom, prefillMs }: ClusterChoice,
    { engine, events, onTrouble }: MemberOptions,
    parts: Parts,
  ) {
    const { worker, router, receiver, figures } = parts;
    this.#parts = parts;
    this.id = worker.id;
    events.target = worker.events;
    const prompts = new MovedPrompts({
      router,
      worker: worker.id,
      isOpen: () => !this.#leaving,
      limitMs: prefillMs,
      figures,
      abort: (request, reason) => void receiver.abort(request, reason),
      hold: (until) => engine.waitFor(until),
    });
    parts.setPrompts(prompts);
    this.answers =
      role === 'prefill'
        ? null
        : new AnswersElsewhereRead({ engine, prefillFrom, move: (prompt, signal) => prompts.move(prompt, signal) });
    this.lost = worker.left.then(() => {
      if (this.#leaving) return new Promise<void>(() => {});
      onTrouble('the connection to NATS was ended; other workers know nothing of this one any more');
      return undefined;
    });
  }

  /** Puts what it counts into a registry. */
  measure(registry: Registry): void {
    const { router, figures } = this.#parts;
    figures.addTo(registry);
    const workers = {
      name: 'cluster_workers',
      help: 'Workers of this model that are known, this one included',
      labelNames: ['role'],
    };
    readGauge(registry, workers, () => {
      const fitting = router.workers().filter(({ fits }) => fits);
      return ['prefill', 'decode', 'both'].map((role) => [{ role }, fitting.filter((worker) => worker.role === role).length]);
    });
    readGauge(registry, { name: 'cluster_connected', help: '1 while NATS is there' }, () => [[{}, router.connected ? 1 : 0]]);
  }

  /** What somebody who looks after it may want to see. */
  inspect(): object {
    const { router, worker, receiver, sender } = this.#parts;
    return {
      id: this.id,
      connected: router.connected,
      jobs: worker.numRunning,
      moves: { incoming: receiver.numOpen, holding: receiver.numHolding, outgoing: sender.numOpen },
      router: router.statistics(),
      workers: router.workers().map(({ id, role, fits, draining, load, slots }) => ({ id, role, fits, draining, load, slots })),
    };
  }

  /** Tells the others that it leaves, and ends the jobs that it has: those that are left after a time are given back, for others to do. */
  async drain(timeoutMs: number): Promise<void> {
    this.#leaving = true;
    await within(timeoutMs + LAST_WORDS_MS, this.#parts.worker.drain({ limitMs: timeoutMs }));
  }

  /** Leaves at once. What is on its way is given up on both sides. Does nothing the second time. */
  close(): Promise<void> {
    this.#leaving = true;
    this.#closed ??= this.#parts.close();
    return this.#closed;
  }
}

interface Parts {
  readonly worker: ControlWorker;
  readonly router: ControlRouter;
  readonly receiver: TransferReceiver;
  readonly sender: TransferSender;
  readonly figures: MoveFigures;
  setPrompts(prompts: MovedPrompts): void;
  close(): Promise<void>;
}

/** @param ends filled with what undoes it, for a failure in the middle */
async function openParts(choice: ClusterChoice, options: MemberOptions, ends: (() => unknown)[]): Promise<Parts> {
  const { role, keys, nats: server } = choice;
  const { engine, maxActive } = options;
  const fingerprint = modelFingerprint(engine.model);
  const transport = new TcpTransport({ key: keys.pages });
  ends.push(() => transport.close());
  const moving = { ...engine.transferOptions, modelFingerprint: fingerprint, maxPagesBytes: transport.limits.maxPagesBytes };
  let prompts: MovedPrompts | undefined;
  const receiver = new TransferReceiver({
    ...moving,
    admit: (offer) => prompts?.admit(offer) ?? { refuse: 'this worker is not ready yet' },
  });
  const sender = new TransferSender(moving);
  const figures = new MoveFigures();
  const listener = role === 'prefill' ? null : await listenForPages(transport, choice.pages);
  if (listener !== null) void serveLinks(listener, receiver);
  const nats = await connectNats(connect, server).catch((error: unknown) => {
    throw error instanceof ControlError ? new CliError(error.message) : error;
  });
  ends.push(() => nats.close());
  const common = {
    nats,
    fingerprint,
    layout: managerLayout(engine.manager, engine.transferOptions.forms),
    key: keys.control,
    times: TIMES,
  };
  const jobs = new PrefillJobs({ engine, sender, links: new PageLinks(transport), figures });
  const router = await ControlRouter.start({ ...common, routing: { localPrefillTokens: 0, mostRetries: MOST_RETRIES } });
  ends.push(() => router.close());
  const worker = await ControlWorker.start({
    ...common,
    role,
    address: choice.pagesAs ?? listener?.address ?? '',
    slots: maxActive,
    load: () => loadOf(engine),
    async run(job: Job, signal: AbortSignal) {
      if (job.role === 'prefill') await jobs.run(job, signal);
      else await prompts?.expect(job, signal);
      return '';
    },
  });
  return {
    worker,
    router,
    receiver,
    sender,
    figures,
    setPrompts: (those) => {
      prompts = those;
    },
    async close() {
      receiver.close();
      sender.close();
      await within(LAST_WORDS_MS, Promise.all([worker.close(), router.close()]));
      await transport.close();
      await nats.close();
    },
  };
}

async function listenForPages(transport: TcpTransport, address: string): Promise<PageListener> {
  return transport.listen(address).catch((cause: Error) => {
    throw new CliError(`cannot listen for pages on ${address}: ${cause.message}; choose another address with --pages`);
  });
}

/** Hears all links that come, until the listener is closed. */
async function serveLinks(listener: PageListener, receiver: TransferReceiver): Promise<void> {
  for (;;) {
    const connection = await listener.accept().catch(() => null);
    if (connection === null) return;
    void receiver.serve(connection);
  }
}

function loadOf(engine: HybridEngine): { freePages: number; active: number; waiting: number } {
  const freePages = Math.min(...engine.storage().map(({ free, evictable }) => free + evictable));
  return { freePages, ...engine.load };
}

/** Settles with a promise, or when it has had its time. */
async function within(ms: number, work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([work, late]);
  clearTimeout(timer);
}
