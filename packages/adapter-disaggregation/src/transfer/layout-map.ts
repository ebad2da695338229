import type { Lifecycle } from '@bufferwise/core-policy';
import { TransferError } from '../errors.ts';
import { nameOf, rowBytes, type TransferBuffer, type TransferLayout } from './transfer-layout.ts';

/** Where the bytes of one buffer of a receiver's page come from. */
export interface MappedBuffer {
  /** Bytes from the beginning of the receiver's page. */
  readonly offset: number;
  readonly buffer: TransferBuffer;
  /** Group of the sender's layout, and the bytes from the beginning of its page. */
  readonly fromGroup: number;
  readonly fromOffset: number;
  readonly from: TransferBuffer;
  /** Whether blocks of the two are the same bytes; else rows are taken out of the sender's pages, token by token. */
  readonly isSame: boolean;
}

/** How pages of a receiver are made of pages of a sender. */
export interface LayoutMap {
  readonly sender: TransferLayout;
  readonly receiver: TransferLayout;
  /** Index = group of the receiver; its buffers in the order of their bytes. */
  readonly groups: readonly (readonly MappedBuffer[])[];
}

/** Bytes that a receiver's page may have: what is asked for by somebody else must fit a buffer. */
const MOST_PAGE_BYTES = 2 ** 30;

/**
 * Maps a sender's pages to those of a receiver. Order, pools, groups and policies may differ; tokens of a block, the type of numbers and
 * heads may where both sides say the form of the buffer, and the receiver's heads are some of the sender's.
 *
 * @throws {TransferError} `layout-mismatch` naming the first buffer for which there is no map: bytes must never land where others belong
 */
export function mapLayouts(sender: TransferLayout, receiver: TransferLayout): LayoutMap {
  const sources = new Map<string, { group: number; offset: number; buffer: TransferBuffer }>();
  sender.groups.forEach(({ buffers }, group) => {
    forEachOffset(buffers, (buffer, offset) => sources.set(nameOf(buffer.layerId, buffer.role), { group, offset, buffer }));
  });
  const groups = receiver.groups.map(({ lifecycle, buffers, pageBytes }) => {
    if (pageBytes > MOST_PAGE_BYTES) throw mismatch(`a page has ${pageBytes} bytes, and ${MOST_PAGE_BYTES} is the most`);
    const mapped: MappedBuffer[] = [];
    forEachOffset(buffers, (buffer, offset) => {
      const name = nameOf(buffer.layerId, buffer.role);
      const source = sources.get(name);
      if (source === undefined) throw mismatch(`${told(buffer)} is only where the request goes to`);
      sources.delete(name);
      const fromLifecycle = sender.groups[source.group].lifecycle;
      checkLifecycles(told(buffer), fromLifecycle, lifecycle, sender.tokensPerBlock, receiver.tokensPerBlock);
      const isSame = checkBuffers(source.buffer, buffer, sender.tokensPerBlock, receiver.tokensPerBlock, lifecycle);
      mapped.push({ offset, buffer, fromGroup: source.group, fromOffset: source.offset, from: source.buffer, isSame });
    });
    return mapped;
  });
  for (const { buffer } of sources.values()) throw mismatch(`${told(buffer)} is only where the request comes from`);
  return { sender, receiver, groups };
}

/** @returns whether blocks of both are the same bytes */
function checkBuffers(
  from: TransferBuffer,
  to: TransferBuffer,
  fromTokens: number,
  toTokens: number,
  lifecycle: Lifecycle,
): boolean {
  const sameForm = JSON.stringify(from.form ?? null) === JSON.stringify(to.form ?? null);
  if (from.form !== undefined && to.form !== undefined && lifecycle.kind === 'attention') {
    const [begin, end] = to.form.heads;
    if (begin < from.form.heads[0] || end > from.form.heads[1])
      throw mismatch(
        `${told(to)} has heads ${begin} to ${end} there, and the sender has ${from.form.heads.join(' to ')} of them`,
      );
    if (from.form.headSize !== to.form.headSize)
      throw mismatch(`${told(to)} has heads of ${from.form.headSize} numbers here and of ${to.form.headSize} there`);
    if (to.size !== toTokens * rowBytes(to.form)) throw mismatch(`${told(to)} is not filled by its form`);
    return sameForm && fromTokens === toTokens;
  }
  if (from.size !== to.size) throw mismatch(`${told(to)} has ${from.size} bytes a block here and ${to.size} there`);
  if (from.expansion !== to.expansion)
    throw mismatch(`${told(to)} is ${from.expansion} pages a block here and ${to.expansion} there`);
  if (!sameForm) throw mismatch(`${told(to)} has a form on one side only`);
  if (lifecycle.kind === 'attention' && fromTokens !== toTokens)
    throw mismatch(
      `${told(to)} has blocks of ${fromTokens} tokens here and ${toTokens} there, and no form that says how to cut them`,
    );
  return true;
}

/** Whether the sender keeps, of a buffer, all that the receiver's pages hold. */
function checkLifecycles(name: string, from: Lifecycle, to: Lifecycle, fromTokens: number, toTokens: number): void {
  if (from.kind !== to.kind) throw mismatch(`${name} is ${from.kind} here and ${to.kind} there`);
  if ((from.policy === 'private') !== (to.policy === 'private'))
    throw mismatch(`${name} is ${from.policy} here and ${to.policy} there: private pages stay unpublished on both sides`);
  if (from.kind === 'ssm' || to.kind === 'ssm') return;
  if (from.sparsityGroup !== to.sparsityGroup)
    throw mismatch(`${name} has the sparsity group ${from.sparsityGroup} here and ${to.sparsityGroup} there`);
  if (from.windowSize === null) return;
  if (to.windowSize === null || to.windowSize > from.windowSize)
    throw mismatch(`${name} sees ${from.windowSize} tokens here and ${to.windowSize ?? 'all'} there`);
  if (to.numSinkBlocks * toTokens > from.numSinkBlocks * fromTokens)
    throw mismatch(`${name} keeps ${from.numSinkBlocks * fromTokens} sink tokens here and ${to.numSinkBlocks * toTokens} there`);
  // The first block of the window would begin before what the sender has kept of it.
  if (fromTokens % toTokens !== 0)
    throw mismatch(`${name} has a window, and its blocks of ${fromTokens} tokens here are no whole blocks of ${toTokens} there`);
}

function forEachOffset(buffers: readonly TransferBuffer[], visit: (buffer: TransferBuffer, offset: number) => void): void {
  let offset = 0;
  for (const buffer of buffers) {
    visit(buffer, offset);
    offset += buffer.size;
  }
}

function told({ layerId, role }: TransferBuffer): string {
  return `layer ${layerId}, role ${JSON.stringify(role)}`;
}

function mismatch(what: string): TransferError {
  return new TransferError(
    'layout-mismatch',
    `the two sides keep different pages: ${what}; give both the same layers and sizes, or declare the forms of their buffers`,
  );
}
