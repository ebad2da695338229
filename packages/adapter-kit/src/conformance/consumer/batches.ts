import type { KvCache } from '@bufferwise/cache-manager';
import { ensure } from '../assertions.ts';
import { ensureSameRows, type Row, type Sequence } from './sequence.ts';
import type { ConsumerStage } from './stage.ts';
import { story, textOf } from './stories.ts';

export const batch = story({
  name: 'puts out for a request among others what it does for it alone, in every order',
  async tell(stage) {
    for (const [round, order] of [
      [0, 1, 2],
      [2, 0, 1],
      [1, 2, 0],
    ].entries()) {
      const texts = [5, 19, 11].map((length, i) => textOf(10 * round + i, length));
      const expected: (readonly Row[])[] = [];
      for (const tokens of texts) expected.push(await stage.cold(tokens));
      const open: Sequence[] = [];
      for (const tokens of texts) open.push(await stage.open(tokens));
      for (const share of [0.4, 0.7, 1]) {
        const parts = order
          .map((i) => ({ sequence: open[i], end: Math.ceil(share * texts[i].length) }))
          .filter(({ sequence, end }) => end > sequence.next);
        await stage.step(parts);
        for (const { sequence, end } of parts) sequence.commit(end);
      }
      open.forEach((sequence, i) => {
        ensureSameRows(sequence.rows, expected[i], 0, stage.tolerance, `request ${i} in the order ${order.join(', ')}`);
        sequence.kv.close();
      });
    }
  },
});

export const alternating = story({
  name: 'keeps requests of the same shape apart when they take turns',
  async tell(stage) {
    const texts = [1, 2].map((id) => textOf(id, 16));
    const expected: (readonly Row[])[] = [];
    for (const tokens of texts) expected.push(await stage.cold(tokens));
    const open: Sequence[] = [];
    for (const tokens of texts) open.push(await stage.open(tokens));
    for (let end = 4; end <= 16; end++) for (const sequence of open) await stage.run(sequence, [end]);
    open.forEach((sequence, i) => {
      ensureSameRows(sequence.rows, expected[i], 0, stage.tolerance, `request ${i} of two that take turns`);
      sequence.kv.close();
    });
  },
});

export const untouched = story({
  name: 'leaves pages alone that it was lent',
  async tell(stage) {
    const { tokensPerBlock } = stage;
    const tokens = textOf(1, 5 * tokensPerBlock + 3);
    const owner = await stage.open(tokens);
    await stage.run(owner, [3 * tokensPerBlock, 5 * tokensPerBlock]);
    const before = await contentOf(stage, owner.kv, 5);
    const reader = await stage.open([...tokens.slice(0, 5 * tokensPerBlock), ...textOf(2, 6)]);
    await stage.run(reader);
    reader.kv.close();
    const after = await contentOf(stage, owner.kv, 5);
    ensure(
      before.every((bytes, i) => sameBytes(bytes, after[i])),
      'a page of the first five blocks changed while another request read it',
    );
  },
});

/** Content of the first blocks that a request has pages of, one entry for each attention buffer and page. */
async function contentOf({ manager, device }: ConsumerStage<unknown>, kv: KvCache, blocks: number): Promise<Uint8Array[]> {
  const contents: Uint8Array[] = [];
  for (const [id, bufferIds] of manager.bufferGrouping.entries()) {
    const groupId = id as Parameters<KvCache['basePageIndices']>[0];
    if (manager.lifecycles.get(groupId).kind !== 'attention') continue;
    const slots = kv
      .basePageIndices(groupId)
      .slice(0, blocks)
      .filter((slot) => slot >= 0);
    for (const { layerId, role } of bufferIds) {
      const memory = manager.poolMemory(layerId, role);
      const target = new Uint8Array(slots.length * memory.spec.slotBytes);
      await device.readSlots(memory, slots, target);
      contents.push(target);
    }
  }
  return contents;
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}
