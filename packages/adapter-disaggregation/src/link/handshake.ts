import type { PageTransportLimits } from '@bufferwise/adapter-kit';
import { TransferError } from '../errors.ts';
import { limitsAreSound } from './link-options.ts';
import { derivedKey, joined, labelled, type SealKey, sameBytes } from './seals.ts';

/**
 * How two sides get to know each other, without I/O. Both send a hello, the side that was connected to proves first that it has the
 * key, then the one that connected; what is proven covers both hellos, so neither can be changed, answered from an earlier
 * connection, or sent back to its sender. The key itself never travels. Then each direction has a key of its own.
 *
 * | bytes of a hello | what                                                        |
 * | ---------------- | ----------------------------------------------------------- |
 * | 0–3              | `BWLK`                                                      |
 * | 4                | version of this form, 1                                     |
 * | 5                | 1 with a shared key, 0 without one                          |
 * | 6–7              | 0                                                           |
 * | 8–19             | maxMessageBytes, maxPagesBytes, windowBytes, little endian  |
 * | 20–51            | nonce                                                       |
 */
export const HELLO_BYTES = 52;
/** Bytes of a proof on a link with a key; without one there is none. */
export const PROOF_BYTES = 32;

const MAGIC = 0x4b4c5742;
const VERSION = 1;
const NONCE_BYTES = 32;

/** Which side this is: the one that connected or the one that was connected to. */
export type LinkSide = 'connecting' | 'accepting';

/** What a connection needs once both sides know each other. */
export interface LinkSession {
  /** What the other side takes. */
  readonly peerLimits: PageTransportLimits;
  /** null on a link without a key. */
  readonly keys: { readonly send: SealKey; readonly receive: SealKey } | null;
}

export function makeHello(limits: PageTransportLimits, keyed: boolean): Uint8Array {
  const hello = new Uint8Array(HELLO_BYTES);
  const view = new DataView(hello.buffer);
  view.setUint32(0, MAGIC, true);
  view.setUint8(4, VERSION);
  view.setUint8(5, keyed ? 1 : 0);
  view.setUint32(8, limits.maxMessageBytes, true);
  view.setUint32(12, limits.maxPagesBytes, true);
  view.setUint32(16, limits.windowBytes, true);
  crypto.getRandomValues(hello.subarray(HELLO_BYTES - NONCE_BYTES));
  return hello;
}

/**
 * What the other side takes, by its hello.
 *
 * @throws {TransferError} `peer-not-authenticated` for no hello, another version, or a key on one side only
 */
export function readHello(hello: Uint8Array, keyed: boolean): PageTransportLimits {
  const view = new DataView(hello.buffer, hello.byteOffset, HELLO_BYTES);
  if (view.getUint32(0, true) !== MAGIC || view.getUint8(4) !== VERSION)
    throw refused('what answers is no transport of this version; install versions of the two that go together');
  if (view.getUint8(5) !== (keyed ? 1 : 0)) throw refused('one side has a shared key and the other has none');
  const limits = {
    maxMessageBytes: view.getUint32(8, true),
    maxPagesBytes: view.getUint32(12, true),
    windowBytes: view.getUint32(16, true),
  };
  if (!limitsAreSound(limits)) throw refused(`the other side states limits that cannot be: ${JSON.stringify(limits)}`);
  return limits;
}

/** Both hellos, in the order in which both sides see them. */
export function transcript(connecting: Uint8Array, accepting: Uint8Array): Uint8Array {
  return joined(connecting, accepting);
}

/** What shows that a side has the key. */
export function proofOf(key: SealKey, side: LinkSide, hellos: Uint8Array): Promise<Uint8Array> {
  return labelled(key, `proof of ${side}`, hellos);
}

/** @throws {TransferError} `peer-not-authenticated` when the other side does not have the key */
export async function checkProof(key: SealKey, side: LinkSide, hellos: Uint8Array, proof: Uint8Array): Promise<void> {
  if (!sameBytes(proof, await proofOf(key, side, hellos))) throw refused('the other side does not have the same shared key');
}

/** The keys of the two directions, for one side. */
export async function sessionKeys(key: SealKey, side: LinkSide, hellos: Uint8Array): Promise<NonNullable<LinkSession['keys']>> {
  const ofSender = (sender: LinkSide) => derivedKey(key, `key of ${sender}`, hellos);
  const [connecting, accepting] = await Promise.all([ofSender('connecting'), ofSender('accepting')]);
  return side === 'connecting' ? { send: connecting, receive: accepting } : { send: accepting, receive: connecting };
}

function refused(why: string): TransferError {
  return new TransferError('peer-not-authenticated', `no connection: ${why}`);
}
