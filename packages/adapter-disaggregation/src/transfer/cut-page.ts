import { decodeHalf, encodeHalf } from '@bufferwise/adapter-kit';
import type { LayoutMap, MappedBuffer } from './layout-map.ts';
import { type BufferForm, numberBytes, rowBytes } from './transfer-layout.ts';

/** Pages of the sender that one page of a receiver is made of, as `[group, block]` of the sender. */
export function pagesNeeded(
  { sender, receiver, groups }: LayoutMap,
  group: number,
  block: number,
  handover: number,
): readonly (readonly [group: number, block: number])[] {
  const needed = new Map<string, readonly [number, number]>();
  for (const { fromGroup } of groups[group]) {
    const { begin, end } = blocksOf(sender.tokensPerBlock, receiver.tokensPerBlock, isState(receiver, group), block, handover);
    for (let each = begin; each < end; each++) needed.set(`${fromGroup} ${each}`, [fromGroup, each]);
  }
  return [...needed.values()];
}

/**
 * One page of the receiver, made of pages of the sender: buffers in their order, tokens behind the hand-over zero where blocks are cut anew.
 *
 * @param pageOf a page of the sender, its buffers one behind the other
 */
export function cutPage(
  map: LayoutMap,
  group: number,
  block: number,
  handover: number,
  pageOf: (group: number, block: number) => Uint8Array,
): Uint8Array {
  const { sender, receiver } = map;
  const page = new Uint8Array(receiver.groups[group].pageBytes);
  for (const mapped of map.groups[group]) {
    const { begin, end } = blocksOf(sender.tokensPerBlock, receiver.tokensPerBlock, isState(receiver, group), block, handover);
    const { offset, buffer, fromGroup, fromOffset, isSame } = mapped;
    if (isSame) {
      page.set(pageOf(fromGroup, begin).subarray(fromOffset, fromOffset + buffer.size), offset);
      continue;
    }
    const first = block * receiver.tokensPerBlock;
    const last = Math.min(first + receiver.tokensPerBlock, handover);
    for (let each = begin; each < end; each++) {
      const source = pageOf(fromGroup, each);
      const from = Math.max(first, each * sender.tokensPerBlock);
      const to = Math.min(last, (each + 1) * sender.tokensPerBlock);
      cutRows(mapped, page, source, { to: from - first, from: from - each * sender.tokensPerBlock, count: to - from });
    }
  }
  return page;
}

/** Blocks of the sender that hold the tokens of a receiver's block. */
function blocksOf(fromTokens: number, toTokens: number, isState: boolean, block: number, handover: number) {
  if (isState) {
    const last = Math.ceil(handover / fromTokens) - 1;
    return { begin: last, end: last + 1 };
  }
  const end = Math.min((block + 1) * toTokens, handover);
  return { begin: Math.floor((block * toTokens) / fromTokens), end: Math.ceil(end / fromTokens) };
}

function isState({ groups }: LayoutMap['receiver'], group: number): boolean {
  return groups[group].lifecycle.kind === 'ssm';
}

/** Takes the rows of some tokens out of one page and puts them into another. */
function cutRows(
  { offset, buffer, fromOffset, from }: MappedBuffer,
  target: Uint8Array,
  source: Uint8Array,
  rows: { to: number; from: number; count: number },
): void {
  const to = buffer.form as BufferForm;
  const sender = from.form as BufferForm;
  const skip = (to.heads[0] - sender.heads[0]) * sender.headSize * numberBytes(sender);
  const numbers = (to.heads[1] - to.heads[0]) * to.headSize;
  for (let row = 0; row < rows.count; row++) {
    const begin = fromOffset + (rows.from + row) * rowBytes(sender) + skip;
    const bytes = source.subarray(begin, begin + numbers * numberBytes(sender));
    target.set(to.dtype === sender.dtype ? bytes : converted(bytes, to.dtype), offset + (rows.to + row) * rowBytes(to));
  }
}

function converted(bytes: Uint8Array, dtype: BufferForm['dtype']): Uint8Array {
  const source = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (dtype === 'f16') {
    const target = new DataView(new ArrayBuffer(bytes.length / 2));
    for (let i = 0; i < bytes.length / 4; i++) target.setUint16(i * 2, encodeHalf(source.getFloat32(i * 4, true)), true);
    return new Uint8Array(target.buffer);
  }
  const target = new DataView(new ArrayBuffer(bytes.length * 2));
  for (let i = 0; i < bytes.length / 2; i++) target.setFloat32(i * 4, decodeHalf(source.getUint16(i * 2, true)), true);
  return new Uint8Array(target.buffer);
}
