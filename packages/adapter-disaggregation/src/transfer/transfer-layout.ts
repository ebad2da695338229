import { type BufferId, type CacheConfig, type Lifecycle, LifecycleRegistry, lifecycleKey } from '@bufferwise/core-policy';
import { TransferError } from '../errors.ts';

/**
 * How the numbers of an attention buffer lie in its pages: token behind token, `[tokens, heads, headSize]`. With it pages can be cut
 * into others: with another number of tokens, of another type, or with a part of the heads.
 */
export interface BufferForm {
  readonly dtype: 'f32' | 'f16';
  /** Heads that this side keeps, of those of the model: `[begin, end)`. */
  readonly heads: readonly [begin: number, end: number];
  /** Numbers of one head for one token. */
  readonly headSize: number;
}

/** Says the form of a buffer; undefined: nothing is known of it, and its pages travel as they are or not at all. */
export type BufferForms = (layerId: number, role: string) => BufferForm | undefined;

/** One buffer of a page. */
export interface TransferBuffer {
  readonly layerId: number;
  readonly role: string;
  /** Bytes for one block. */
  readonly size: number;
  /** Pages that the block is cut into. */
  readonly expansion: number;
  readonly form?: BufferForm;
}

/** Buffers whose pages travel together. */
export interface TransferGroup {
  readonly lifecycle: Lifecycle;
  /** By layer, then role: the order of their bytes in a page that travels, wherever they lie on either side. */
  readonly buffers: readonly TransferBuffer[];
  /** Bytes of all buffers for one block. */
  readonly pageBytes: number;
}

/** What travels of a request, without slots, pools or the ids of either side. Groups are numbered by their lifecycle's meaning. */
export interface TransferLayout {
  readonly tokensPerBlock: number;
  readonly groups: readonly TransferGroup[];
}

const NUMBER_BYTES = { f32: 4, f16: 2 } as const;

/** Bytes of one token in a buffer of a form. */
export function rowBytes({ dtype, heads: [begin, end], headSize }: BufferForm): number {
  return (end - begin) * headSize * NUMBER_BYTES[dtype];
}

/** Bytes of one number. */
export function numberBytes({ dtype }: BufferForm): number {
  return NUMBER_BYTES[dtype];
}

/** The layout of a config; the same for two configs that differ only in the order of layers and buffers, in tiers or in coalescing. */
export function transferLayout(config: CacheConfig, forms?: BufferForms): TransferLayout {
  const registry = LifecycleRegistry.fromConfig(config);
  const { tokensPerBlock } = config;
  const sizes = new Map<string, { size: number; expansion: number }>();
  for (const { layerId, buffers } of config.layers) {
    for (const { role, size, tokensPerBlockOverride = tokensPerBlock } of buffers) {
      const expansion = tokensPerBlock / tokensPerBlockOverride;
      sizes.set(nameOf(layerId, role), { size: size * expansion, expansion });
    }
  }
  return layoutOf(tokensPerBlock, registry, ({ layerId, role }) => sizes.get(nameOf(layerId, role)) as never, forms);
}

/**
 * The layout of what lifecycles keep.
 *
 * @param sizeOf bytes of a buffer for one block, and the pages it is cut into
 * @throws {TransferError} `invalid-transfer-options` on a form that does not fit its buffer
 */
export function layoutOf(
  tokensPerBlock: number,
  lifecycles: LifecycleRegistry,
  sizeOf: (buffer: BufferId) => Pick<TransferBuffer, 'size' | 'expansion'>,
  forms: BufferForms = () => undefined,
): TransferLayout {
  const groups = lifecycles.bufferGrouping
    .map((ids, id) => ({ lifecycle: lifecycles.get(id as never), ids }))
    .sort((a, b) => (lifecycleKey(a.lifecycle) < lifecycleKey(b.lifecycle) ? -1 : 1))
    .map(({ lifecycle, ids }): TransferGroup => {
      const buffers = ids.map(({ layerId, role }): TransferBuffer => {
        const { size, expansion } = sizeOf({ layerId, role });
        const form = forms(layerId, role);
        if (form === undefined) return { layerId, role, size, expansion };
        if (lifecycle.kind !== 'attention' || !isForm(form) || tokensPerBlock * rowBytes(form) !== size)
          throw new TransferError(
            'invalid-transfer-options',
            `layer ${layerId}, role ${JSON.stringify(role)} has ${size} bytes for ${tokensPerBlock} tokens, which its form ` +
              `${JSON.stringify(form)} does not fill; forms are for rows of attention, or leave it out`,
          );
        return { layerId, role, size, expansion, form };
      });
      buffers.sort((a, b) => a.layerId - b.layerId || (a.role < b.role ? -1 : 1));
      return { lifecycle, buffers, pageBytes: bytesOf(buffers) };
    });
  return { tokensPerBlock, groups };
}

/** What a side says of its layout: all of it, so that a refusal can name the buffer. */
export interface LayoutDescription {
  readonly tokensPerBlock: number;
  readonly groups: readonly {
    readonly lifecycle: Lifecycle;
    /** `[layerId, role, size, expansion]`, or with the form `[…, dtype, firstHead, endHead, headSize]` behind it. */
    readonly buffers: readonly BufferRow[];
  }[];
}

/** A buffer of a layout, as it is told. */
export type BufferRow =
  | readonly [number, string, number, number]
  | readonly [number, string, number, number, BufferForm['dtype'], number, number, number];

export function describeLayout({ tokensPerBlock, groups }: TransferLayout): LayoutDescription {
  return {
    tokensPerBlock,
    groups: groups.map(({ lifecycle, buffers }) => ({
      lifecycle,
      buffers: buffers.map(
        ({ layerId, role, size, expansion, form }): BufferRow =>
          form === undefined
            ? [layerId, role, size, expansion]
            : [layerId, role, size, expansion, form.dtype, form.heads[0], form.heads[1], form.headSize],
      ),
    })),
  };
}

/** The layout that a description stands for. */
export function readLayout({ tokensPerBlock, groups }: LayoutDescription): TransferLayout {
  return {
    tokensPerBlock,
    groups: groups.map(({ lifecycle, buffers: rows }) => {
      const buffers = rows.map(([layerId, role, size, expansion, dtype, begin, end, headSize]): TransferBuffer => {
        const form = dtype && ({ dtype, heads: [begin as number, end as number], headSize: headSize as number } as const);
        return { layerId, role, size, expansion, ...(form && { form }) };
      });
      return { lifecycle, buffers, pageBytes: bytesOf(buffers) };
    }),
  };
}

/** Whether a value that came from elsewhere is a description whose numbers can be reckoned with. */
export function isLayoutDescription(value: unknown): value is LayoutDescription {
  if (!isRecord(value) || !isCount(value.tokensPerBlock, 1) || !Array.isArray(value.groups)) return false;
  return value.groups.every(
    (group) =>
      isRecord(group) && isLifecycle(group.lifecycle) && Array.isArray(group.buffers) && group.buffers.every(isBufferRow),
  );
}

function isLifecycle(value: unknown): value is Lifecycle {
  if (!isRecord(value) || !['required', 'optional', 'private'].includes(value.policy as string)) return false;
  if (value.kind === 'ssm') return true;
  const { kind, windowSize, numSinkBlocks, sparsityGroup } = value;
  const isLabel = sparsityGroup === null || (typeof sparsityGroup === 'string' && sparsityGroup.length <= 1000);
  return kind === 'attention' && (windowSize === null || isCount(windowSize, 1)) && isCount(numSinkBlocks) && isLabel;
}

function isBufferRow(value: unknown): value is BufferRow {
  if (!Array.isArray(value) || (value.length !== 4 && value.length !== 8)) return false;
  const [layerId, role, size, expansion, dtype, begin, end, headSize] = value;
  const isBuffer =
    isCount(layerId) && typeof role === 'string' && role.length <= 1000 && isCount(size, 1) && isCount(expansion, 1);
  return isBuffer && (value.length === 4 || isForm({ dtype, heads: [begin, end], headSize }));
}

function isForm({ dtype, heads: [begin, end], headSize }: BufferForm): boolean {
  return Object.hasOwn(NUMBER_BYTES, dtype) && isCount(begin) && isCount(end, begin + 1) && isCount(headSize, 1);
}

/** Whole numbers below 2^31, so that products of two stay exact. */
function isCount(value: unknown, least = 0): boolean {
  return Number.isInteger(value) && (value as number) >= least && (value as number) < 2 ** 31;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function bytesOf(buffers: readonly TransferBuffer[]): number {
  return buffers.reduce((bytes, { size }) => bytes + size, 0);
}

export function nameOf(layerId: number, role: string): string {
  return JSON.stringify([layerId, role]);
}
