import type { Lifecycle } from '@bufferwise/core-policy';
import { damaged } from './prefix-file-error.ts';
import type { PrefixGroup } from './prefix-info.ts';

/** The part of a header that is JSON. Groups say only whether they are there: which blocks follows from what they are. */
export interface PlainHeader {
  readonly modelName: string | null;
  readonly modelFingerprint: string;
  readonly tokensPerBlock: number;
  /** Position in `tokens`, ascending, and 64 hexadecimal digits of what stands there instead of a token. */
  readonly digests: readonly (readonly [number, string])[];
  readonly loraId: string | null;
  readonly salted: boolean;
  readonly exact: boolean;
  readonly compressed: boolean;
  readonly key: string;
  readonly groups: readonly (Omit<PrefixGroup, 'ranges' | 'numPages'> & {
    readonly included: boolean;
  })[];
}

const MAX_GROUPS = 1024;

/**
 * Reads the JSON of a header, and believes nothing of it.
 *
 * @throws {PrefixFileError} `prefix-file-damaged`, which names what is not as it has to be
 */
export function headerFields(json: Uint8Array, numTokens: number): PlainHeader {
  const header = new Fields(parse(json), 'its header');
  const tokensPerBlock = header.count('tokensPerBlock');
  if (numTokens === 0 || numTokens % tokensPerBlock !== 0)
    throw damaged(`has ${numTokens} tokens, which are no whole blocks of ${tokensPerBlock}`);
  const groups = header.list('groups', MAX_GROUPS).map((group, i) => groupOf(new Fields(group, `its group ${i}`)));
  if (!groups.some(({ included }) => included)) throw damaged('has no pages');
  return {
    modelName: header.orNull('modelName', (name) => header.text(name, /^/)),
    modelFingerprint: header.text('modelFingerprint', /./s),
    tokensPerBlock,
    digests: digestsOf(header, numTokens),
    loraId: header.orNull('loraId', (name) => loraOf(header, name)),
    salted: header.flag('salted'),
    exact: header.flag('exact'),
    compressed: header.flag('compressed'),
    key: header.text('key', /^[0-9a-f]{64}$/),
    groups,
  };
}

/** An object whose fields are looked at one by one. */
class Fields {
  readonly #fields: Readonly<Record<string, unknown>>;
  readonly #where: string;

  constructor(value: unknown, where: string) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) throw damaged(`has no object for ${where}`);
    this.#fields = value as Readonly<Record<string, unknown>>;
    this.#where = where;
  }

  text(name: string, form: RegExp): string {
    const value = this.#own(name);
    return typeof value === 'string' && form.test(value) ? value : this.#refuse(name);
  }

  /** A whole number from `least` on, of 4 bytes. */
  count(name: string, least = 1): number {
    const value = this.#own(name);
    return isCount(value, least) ? value : this.#refuse(name);
  }

  flag(name: string): boolean {
    const value = this.#own(name);
    return typeof value === 'boolean' ? value : this.#refuse(name);
  }

  list(name: string, most: number): readonly unknown[] {
    const value = this.#own(name);
    return Array.isArray(value) && value.length <= most ? value : this.#refuse(name);
  }

  fields(name: string): Fields {
    return new Fields(this.#own(name), `${name} of ${this.#where}`);
  }

  orNull<T>(name: string, read: (name: string) => T): T | null {
    return this.#own(name) === null ? null : read(name);
  }

  #own(name: string): unknown {
    return Object.hasOwn(this.#fields, name) ? this.#fields[name] : undefined;
  }

  #refuse(name: string): never {
    throw damaged(`has no possible ${name} in ${this.#where}`);
  }
}

function parse(json: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(json));
  } catch {
    throw damaged('has a header that is no JSON');
  }
}

function groupOf(group: Fields): PlainHeader['groups'][number] {
  const lifecycle = lifecycleOf(group.fields('lifecycle'));
  const included = group.flag('included');
  if (!included && lifecycle.policy === 'required') throw damaged('lacks the pages of a required group');
  return {
    lifecycle,
    layerIds: group.list('layerIds', 2 ** 20).map((id) => (isCount(id, 0) ? id : refuse('a layer'))),
    pageBytes: group.count('pageBytes'),
    arrangement: group.orNull('arrangement', (name) => group.text(name, /^[0-9a-f]{64}$/)),
    form: group.orNull('form', (name) => group.text(name, /^[0-9a-f]{16}$/)),
    included,
  };
}

function lifecycleOf(fields: Fields): Lifecycle {
  const kind = fields.text('kind', /^(attention|ssm)$/);
  const policy = fields.text('policy', /^(required|optional)$/) as 'required' | 'optional';
  if (kind === 'ssm') return { kind, policy };
  return {
    kind: 'attention',
    windowSize: fields.orNull('windowSize', (name) => fields.count(name)),
    numSinkBlocks: fields.count('numSinkBlocks', 0),
    sparsityGroup: fields.orNull('sparsityGroup', (name) => fields.text(name, /^/)),
    policy,
  };
}

function digestsOf(header: Fields, numTokens: number): PlainHeader['digests'] {
  let last = -1;
  return header.list('digests', numTokens).map((entry) => {
    const [position, digest] = Array.isArray(entry) ? entry : [];
    const isSound =
      isCount(position, last + 1) && position < numTokens && typeof digest === 'string' && /^[0-9a-f]{64}$/.test(digest);
    if (!isSound) return refuse('a digest');
    last = position;
    return [position, digest];
  });
}

function loraOf(header: Fields, name: string): string {
  const id = header.text(name, /^\d{1,20}$/);
  return BigInt(id) < 1n << 64n ? id : refuse('a LoRA id');
}

function isCount(value: unknown, least: number): value is number {
  return Number.isInteger(value) && (value as number) >= least && (value as number) <= 0xffffffff;
}

function refuse(what: string): never {
  throw damaged(`has ${what} in its header that cannot be`);
}
