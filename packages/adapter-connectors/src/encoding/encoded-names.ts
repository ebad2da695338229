import { type ConnectorLayout, type PageKey, PageNames } from '@bufferwise/adapter-kit';
import { blockKey, keyToHex, rootKey } from '@bufferwise/cache-manager/outside';
import { PageCodec, type PageEncoding } from './page-codec.ts';

/** How the pages whose names begin alike are kept. */
export interface EncodedKind {
  readonly codec: PageCodec;
  /** Bytes of a page at most; undefined where nobody said. */
  readonly pageBytes: number | undefined;
  /** What stands before their names on the medium. */
  readonly tag: string;
}

const MAX_KEY_LENGTH = 200;
const utf8 = new TextEncoder();

/**
 * Names of encoded pages on the medium: a tag for the form, a dot, and the name of the page; or, where that would be too long, its SHA-256. An
 * encoding, and each way to keep numbers in 8 bits, has a tag of its own, so that nobody finds what he cannot read or does not want.
 */
export class EncodedNames {
  /** By the first characters of names: those of a group of the layout. */
  readonly #kinds = new Map<string, EncodedKind>();
  readonly #others: EncodedKind;

  constructor(layout: ConnectorLayout | undefined, encoding: PageEncoding) {
    const isInexact = encoding.int8 !== undefined && encoding.int8 !== false;
    const kindOf = (codec: PageCodec, pageBytes?: number): EncodedKind => {
      const tag = isInexact ? `int8${codec.form === null ? '' : `-${codec.form}`}` : 'planes';
      return { codec, pageBytes, tag: `${tag}.` };
    };
    this.#others = kindOf(new PageCodec(undefined, encoding));
    for (const group of layout?.groups ?? []) {
      const { prefix } = new PageNames(layout as ConnectorLayout, group);
      this.#kinds.set(prefix, kindOf(new PageCodec(group, encoding), group.pageBytes));
    }
  }

  kindOf(key: string): EncodedKind {
    // The names of a group begin with 64 digits and a hyphen.
    return this.#kinds.get(key.slice(0, 65)) ?? this.#others;
  }

  /** The name of an encoded page. */
  encoded({ key, affinity }: PageKey): PageKey & { readonly isHashed: boolean } {
    const { tag } = this.kindOf(key);
    const isHashed = isTooLong(tag, key);
    return { key: `${tag}${isHashed ? `x-${digestOf(key)}` : `k-${key}`}`, affinity, isHashed };
  }

  /** The name of the page of an encoded one; undefined when it is none of these, or is hashed. */
  decoded(encodedKey: string): string | undefined {
    const key = /^[^.]+[.]k-(.+)$/.exec(encodedKey)?.[1];
    return key !== undefined && this.encoded({ key }).key === encodedKey ? key : undefined;
  }

  /** Whether only the page itself can say what it is called. */
  isHashed(encodedKey: string): boolean {
    return /^[^.]+[.]x-[0-9a-f]{64}$/.test(encodedKey);
  }
}

function isTooLong(tag: string, key: string): boolean {
  return tag.length + 2 + key.length > MAX_KEY_LENGTH;
}

function digestOf(key: string): string {
  return keyToHex(blockKey(rootKey(), utf8.encode(key)));
}
