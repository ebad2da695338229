import { importKey, joined, labelled, type SealKey, sameBytes } from '../link/seals.ts';
import { type ControlMessage, checkMessage, decodeJson, encodeJson, invalidMessage, isId } from './control-message.ts';
import type { SenderMark } from './session-guard.ts';

/**
 * A message as it travels, and who sent it:
 *
 * | bytes  | what                                                                       |
 * | ------ | -------------------------------------------------------------------------- |
 * | 0      | version of this form, 1                                                    |
 * | 1      | 1 with a seal, 0 without                                                   |
 * | 2–33   | with a seal: HMAC-SHA-256 of the subject and of what follows               |
 * | behind | JSON: `from`, `session`, `startedMs`, `number`, `sentMs`, `message`        |
 */
export interface Envelope extends SenderMark {
  /** On the sender's own clock, milliseconds since 1970. */
  readonly sentMs: number;
  readonly message: ControlMessage;
}

const VERSION = 1;
const SEAL_BYTES = 32;

/** Writes and reads envelopes; with a key, only sealed ones. */
export class EnvelopeCodec {
  readonly #key: Promise<SealKey> | null;
  readonly #mostSkewMs: number;
  readonly #wallMs: () => number;

  /**
   * @param options `key`: shared by all, null where whoever may publish is trusted; `mostSkewMs`: sealed messages that are older, or from
   * further in the future, are refused
   * @throws {TransferError} `invalid-transport-options` for a key that could be guessed
   */
  constructor(options: { key: Uint8Array | null; mostSkewMs: number; wallMs?: () => number }) {
    this.#key = options.key === null ? null : importKey(options.key);
    this.#mostSkewMs = options.mostSkewMs;
    this.#wallMs = options.wallMs ?? Date.now;
  }

  async seal(subject: string, envelope: Envelope): Promise<Uint8Array> {
    const json = encodeJson(envelope);
    if (this.#key === null) return joined(Uint8Array.of(VERSION, 0), json);
    return joined(Uint8Array.of(VERSION, 1), await sealOf(await this.#key, subject, json), json);
  }

  /** Rejects with {ControlError} `invalid-control-message` for what is none, or is not sealed as it should be. */
  async open(subject: string, bytes: Uint8Array): Promise<Envelope> {
    if (bytes[0] !== VERSION) throw invalidMessage('it is of another version');
    const isSealed = bytes[1] === 1;
    if (isSealed !== (this.#key !== null))
      throw invalidMessage(`it is ${isSealed ? 'sealed' : 'not sealed'}; give all sides one key or none`);
    let json = bytes.subarray(2);
    if (this.#key !== null) {
      const seal = json.subarray(0, SEAL_BYTES);
      json = json.subarray(SEAL_BYTES);
      if (!sameBytes(seal, await sealOf(await this.#key, subject, json))) throw invalidMessage('it has the seal of another');
    }
    const { from, session, startedMs, number, sentMs, message } = decodeJson(json);
    const areCounts = [startedMs, number, sentMs].every((value) => Number.isSafeInteger(value) && (value as number) >= 0);
    if (!isId(from) || !isId(session) || !areCounts) throw invalidMessage('it does not say who sent it');
    const mark = { from, session, startedMs, number, sentMs } as SenderMark & { sentMs: number };
    if (isSealed && Math.abs(this.#wallMs() - mark.sentMs) > this.#mostSkewMs)
      throw invalidMessage('it is too old, or the clocks of the two sides differ too much');
    return { ...mark, message: checkMessage(message) };
  }
}

function sealOf(key: SealKey, subject: string, json: Uint8Array): Promise<Uint8Array> {
  return labelled(key, 'control', encodeJson(subject), Uint8Array.of(0), json);
}
