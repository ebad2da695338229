import { AdapterError, type CallOptions } from '@bufferwise/adapter-kit';
import { ByteQueue } from './byte-queue.ts';
import {
  checkProof,
  HELLO_BYTES,
  type LinkSession,
  type LinkSide,
  makeHello,
  PROOF_BYTES,
  proofOf,
  readHello,
  sessionKeys,
  transcript,
} from './handshake.ts';
import { LinkConnection } from './link-connection.ts';
import { type LinkSettings, messageWindowBytes } from './link-options.ts';
import type { SealKey } from './seals.ts';
import type { Wire } from './wire.ts';

/**
 * Makes a connection of a wire: both sides greet each other, or the wire is ended.
 *
 * Rejects with {TransferError} `peer-not-authenticated`, {AdapterError} `peer-lost` when the other side leaves or takes too long, and
 * with the signal's reason.
 *
 * @param key imported, null for a link without one
 */
export async function greet(
  wire: Wire,
  side: LinkSide,
  key: SealKey | null,
  settings: LinkSettings,
  options?: CallOptions,
): Promise<LinkConnection> {
  const { limits, clock, handshakeTimeoutMs } = settings;
  // Until the other side has shown that it has the key it gets room for that and for nothing else.
  let mostBytes = HELLO_BYTES + (key === null ? 0 : PROOF_BYTES);
  const meeting = new Meeting(wire, () => mostBytes);
  const tooLate = clock.after(handshakeTimeoutMs, () =>
    meeting.fail(new AdapterError('peer-lost', `${wire.peer} did not greet within ${handshakeTimeoutMs} ms; connect again`)),
  );
  const stop = () => meeting.fail(options?.signal?.reason);
  options?.signal?.addEventListener('abort', stop);
  if (options?.signal?.aborted) stop();
  try {
    const hello = makeHello(limits, key !== null);
    if (side === 'connecting') {
      // The accepting side may talk as soon as it has seen the proof, while its own is still being checked here.
      mostBytes += limits.windowBytes + messageWindowBytes(limits);
      wire.write(hello.slice());
      const theirs = await meeting.take(HELLO_BYTES);
      const peerLimits = readHello(theirs, key !== null);
      const hellos = transcript(hello, theirs);
      if (key !== null) {
        await checkProof(key, 'accepting', hellos, await meeting.take(PROOF_BYTES));
        wire.write(await proofOf(key, 'connecting', hellos));
      }
      await meeting.take(WELCOME.length);
      return meeting.connection(await sessionOf(key, side, hellos, peerLimits), settings);
    }
    const theirs = await meeting.take(HELLO_BYTES);
    const peerLimits = readHello(theirs, key !== null);
    const hellos = transcript(theirs, hello);
    wire.write(hello.slice());
    if (key !== null) {
      wire.write(await proofOf(key, 'accepting', hellos));
      await checkProof(key, 'connecting', hellos, await meeting.take(PROOF_BYTES));
    }
    const session = await sessionOf(key, side, hellos, peerLimits);
    const connection = meeting.connection(session, settings);
    wire.write(WELCOME.slice());
    return connection;
  } catch (error) {
    wire.destroy();
    throw error;
  } finally {
    tooLate();
    options?.signal?.removeEventListener('abort', stop);
  }
}

/** The accepting side's last word: until it came, nothing of the connecting side may follow its proof. */
const WELCOME = Uint8Array.of(1);

async function sessionOf(
  key: SealKey | null,
  side: LinkSide,
  hellos: Uint8Array,
  peerLimits: LinkSession['peerLimits'],
): Promise<LinkSession> {
  return { peerLimits, keys: key === null ? null : await sessionKeys(key, side, hellos) };
}

/** What comes over a wire before there is a connection. */
class Meeting {
  readonly #wire: Wire;
  readonly #queue = new ByteQueue();
  #failure: { readonly error: unknown } | undefined;
  #wake = () => {};

  constructor(wire: Wire, mostBytes: () => number) {
    this.#wire = wire;
    wire.listener = {
      bytes: (chunk) => {
        this.#queue.push(chunk);
        if (this.#queue.length > mostBytes())
          this.fail(new AdapterError('peer-lost', `${wire.peer} sent too much before it greeted`));
        this.#wake();
      },
      ended: () =>
        this.fail(new AdapterError('peer-lost', `${wire.peer} left before it had greeted; it may want another shared key`)),
    };
  }

  fail(error: unknown): void {
    this.#failure ??= { error };
    this.#wake();
  }

  async take(length: number): Promise<Uint8Array> {
    for (;;) {
      if (this.#failure) throw this.#failure.error;
      const bytes = this.#queue.take(length);
      if (bytes !== null) return bytes.slice();
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** Hands the wire over, with what came early. */
  connection(session: LinkSession, settings: LinkSettings): LinkConnection {
    if (this.#failure) throw this.#failure.error;
    return new LinkConnection(this.#wire, session, settings, this.#queue);
  }
}
