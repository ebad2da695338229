import { hkdf } from '@noble/hashes/hkdf.js';
import { hmac } from '@noble/hashes/hmac.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex } from '@noble/hashes/utils.js';

/** First byte of a sealed page: the version of this form. */
const VERSION = 1;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

const utf8 = new TextEncoder();

/**
 * Names and pages under one key. Form of a sealed page: version (1 byte), nonce (12), what AES-256-GCM makes of the page (its length and a tag of
 * 16). The name of a page is authenticated with it. Names are hashed at once and not by `crypto.subtle`, as a lookup asks for thousands.
 */
export class PageSecrets {
  /** What a sealed page has more than the page. */
  static readonly OVERHEAD_BYTES = 1 + NONCE_BYTES + TAG_BYTES;

  /** Has taken in the key already; cloned for each name. */
  readonly #names: ReturnType<typeof hmac.create>;
  readonly #pageKey: Promise<CryptoKey>;

  /** @param key copied */
  constructor(key: Uint8Array) {
    this.#names = hmac.create(sha256, derived(key, 'page names'));
    this.#pageKey = crypto.subtle.importKey('raw', derived(key, 'pages'), 'AES-GCM', false, ['encrypt', 'decrypt']);
  }

  /** 64 hexadecimal digits that stand for a name. */
  name(name: string): string {
    return bytesToHex(this.#names.clone().update(utf8.encode(name)).digest());
  }

  async seal(name: string, page: Uint8Array): Promise<Uint8Array> {
    const sealed = new Uint8Array(PageSecrets.OVERHEAD_BYTES + page.length);
    sealed[0] = VERSION;
    const nonce = crypto.getRandomValues(sealed.subarray(1, 1 + NONCE_BYTES));
    const closed = await crypto.subtle.encrypt(parameters(name, nonce), await this.#pageKey, page as BufferSource);
    sealed.set(new Uint8Array(closed), 1 + NONCE_BYTES);
    return sealed;
  }

  /** The page, or null unless it was sealed under this key and name. */
  async open(name: string, sealed: Uint8Array): Promise<Uint8Array | null> {
    if (sealed.length < PageSecrets.OVERHEAD_BYTES || sealed[0] !== VERSION) return null;
    const nonce = sealed.subarray(1, 1 + NONCE_BYTES);
    const closed = sealed.subarray(1 + NONCE_BYTES) as BufferSource;
    const key = await this.#pageKey;
    return crypto.subtle.decrypt(parameters(name, nonce), key, closed).then(
      (page) => new Uint8Array(page),
      () => null,
    );
  }
}

function derived(key: Uint8Array, purpose: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(hkdf(sha256, key, undefined, utf8.encode(`bufferwise ${purpose} v1`), 32));
}

function parameters(name: string, nonce: Uint8Array): AesGcmParams {
  return { name: 'AES-GCM', iv: nonce as BufferSource, additionalData: utf8.encode(name), tagLength: 8 * TAG_BYTES };
}
