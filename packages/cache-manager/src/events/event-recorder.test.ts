import { beforeEach, describe, expect, test } from 'vitest';
import { full, type LayerShape, seq, windowed } from '../../test/support/stage.ts';
import { Grove } from '../../test/support/tree.ts';
import type { PageId } from '../page/page-table.ts';
import type { KvEvent, Medium } from '../ports/kv-event-sink.ts';
import { blockKeys } from '../tree/block-key.ts';
import { BlockKeyTable } from '../tree/block-key-table.ts';
import type { BlockId } from '../tree/block-table.ts';
import { scopeKey } from '../tree/reuse-scope.ts';
import { TokenBuffer } from '../tree/token-seq.ts';
import { keyToHex } from './block-hash.ts';
import { EventLog } from './event-log.ts';
import { EventRecorder } from './event-recorder.ts';

const SCOPE = scopeKey(undefined);
const KEYS = blockKeys(seq(40), {}, 4).map(keyToHex);

/** A tree whose pages are announced, without a manager. */
class Stand {
  readonly grove: Grove;
  readonly log: EventLog;
  readonly recorder: EventRecorder;

  constructor(layers: readonly LayerShape[], options: { media?: readonly Medium[]; partialBlocks?: boolean } = {}) {
    this.grove = new Grove(layers);
    this.log = new EventLog(options);
    const { tree, pages, groups } = this.grove;
    const keys = new BlockKeyTable(tree.blocks, (root) => tree.scopeOf(root));
    this.recorder = new EventRecorder({ sink: this.log, tree, pages, groups, keys, media: options.media ?? ['device'] });
    tree.listener = this.recorder;
  }

  /** Puts the blocks of `tokens` in without pages of their own. */
  blocks(count: number): BlockId[] {
    const { tree } = this.grove;
    const tokens = TokenBuffer.from(seq(count));
    const found: BlockId[] = [];
    let parent = tree.ensureRoot(SCOPE);
    for (let offset = 0; offset < count; offset += 4) {
      const length = Math.min(4, count - offset);
      const known = tree.findChild(parent, tokens, offset, length);
      parent = known >= 0 ? known : tree.insertChild(parent, tokens, offset, length);
      found.push(parent);
    }
    return found;
  }

  list(block: BlockId, group: number, coverage = 4): PageId {
    const page = this.grove.page(group);
    this.grove.tree.link(block, page, coverage);
    return page;
  }

  /** What was told, in short: group, what, blocks by their ordinal in the sequence 0, 1, 2, … */
  told(): string[] {
    this.recorder.flush();
    return this.log.take().map(short);
  }
}

function short(event: KvEvent): string {
  const ordinals = (keys: readonly Uint8Array[]) => keys.map((key) => KEYS.indexOf(keyToHex(key))).join(' ');
  switch (event.type) {
    case 'stored':
      return `${event.groupId} stored ${ordinals(event.blocks.map(({ key }) => key))}${event.tier > 0 ? ` in ${event.tier}` : ''}`;
    case 'removed':
      return `${event.groupId} removed ${ordinals(event.keys)}${event.tier > 0 ? ` from ${event.tier}` : ''}`;
    case 'updated':
      return `${event.groupId} updated ${ordinals([event.block.key])} ${event.tier.from} -> ${event.tier.to}`;
    case 'created':
      return `${event.groupId} created ${event.slotsPerTier}`;
    case 'cleared':
      return 'cleared';
  }
}

const F = 0;
const W = 1;
let stand: Stand;
beforeEach(() => {
  stand = new Stand([full(), windowed(8)]);
});

describe('what is stored', () => {
  test('of one group is one event as long as each block is the child of the one before', () => {
    for (const block of stand.blocks(8)) stand.list(block, F);
    expect(stand.told()).toEqual(['0 stored 0 1']);
  });

  test('of two groups is one event each, though they come in turns', () => {
    for (const block of stand.blocks(8)) for (const group of [F, W]) stand.list(block, group);
    expect(stand.told()).toEqual(['0 stored 0 1', '1 stored 0 1']);
  });

  test('has parent, tokens, priority, scope and lifecycle', () => {
    const [first, second] = stand.blocks(8);
    stand.list(first, F);
    stand.recorder.flush();
    stand.log.take();
    stand.list(second, F);
    stand.recorder.flush();
    const [parentKey, key] = blockKeys(seq(8), {}, 4);
    expect(stand.log.take()).toEqual([
      {
        id: 1,
        type: 'stored',
        groupId: F,
        lifecycle: stand.grove.groups[F].lifecycle,
        tier: 0,
        medium: 'device',
        scope: {},
        parentKey,
        blocks: [{ key, tokens: Uint32Array.of(4, 5, 6, 7), priority: 35 }],
      },
    ]);
  });

  test('begins a new event where a block is missing between', () => {
    const blocks = stand.blocks(16);
    for (const ordinal of [0, 1, 3]) stand.list(blocks[ordinal], F);
    expect(stand.told()).toEqual(['0 stored 0 1', '0 stored 3']);
  });

  test('by a page that does not cover its block is not told, before nor after', () => {
    const [block] = stand.blocks(4);
    const short = stand.list(block, W, 3);
    stand.list(block, F);
    expect(stand.told()).toEqual(['0 stored 0']);
    stand.grove.tree.remove(short);
    expect(stand.told()).toEqual([]);
  });

  test('in a partial block is told to those only who want it', () => {
    const [, tail] = stand.blocks(6);
    stand.list(tail, F, 2);
    expect(stand.told()).toEqual([]);
    const wanting = new Stand([full()], { partialBlocks: true });
    const [first, second] = wanting.blocks(6);
    wanting.list(first, F);
    wanting.list(second, F, 2);
    wanting.recorder.flush();
    const [event] = wanting.log.take();
    const blocks = event.type === 'stored' ? event.blocks : [];
    expect(blocks.map(({ key }) => key)).toEqual(blockKeys(seq(6), {}, 4));
  });
});

describe('what is removed', () => {
  test('is told together, by group', () => {
    const blocks = stand.blocks(8);
    const pages = blocks.map((block) => [F, W].map((group) => stand.list(block, group)));
    stand.told();
    stand.grove.tree.remove(pages[1][W]);
    stand.grove.tree.remove(pages[0][W]);
    stand.grove.tree.remove(pages[1][F]);
    expect(stand.told()).toEqual(['0 removed 1', '1 removed 1 0']);
  });

  test('is told once for every page of a subtree that goes along', () => {
    const blocks = stand.blocks(12);
    const pages = blocks.map((block) => [F, W].map((group) => stand.list(block, group)));
    stand.told();
    stand.grove.tree.remove(pages[0][F]);
    expect(stand.told()).toEqual(['0 removed 0 2 1', '1 removed 2 1 0']);
  });

  test('goes out before the same is stored again, and what follows does not join an older event', () => {
    const [first, second] = stand.blocks(8);
    const page = stand.list(first, W);
    stand.list(second, F);
    stand.told();
    stand.grove.tree.remove(page);
    stand.list(first, W);
    const again = stand.list(second, W);
    stand.grove.tree.remove(again);
    expect(stand.told()).toEqual(['1 removed 0', '1 stored 0 1', '1 removed 1']);
  });

  test('of one group waits while others are stored', () => {
    const [first, second] = stand.blocks(8);
    stand.list(first, F);
    const page = stand.list(first, W);
    stand.told();
    stand.grove.tree.remove(page);
    stand.list(second, F);
    expect(stand.told()).toEqual(['0 stored 1', '1 removed 0']);
  });

  test('never lands before an event that stored it again through its parent', () => {
    const [first, second] = stand.blocks(8);
    stand.list(first, F);
    stand.list(second, F);
    const page = stand.list(second, W);
    stand.told();
    stand.list(first, W);
    stand.grove.tree.remove(page);
    stand.list(second, W);
    expect(stand.told()).toEqual(['1 stored 0', '1 removed 1', '1 stored 1']);
  });
});

describe('what moves', () => {
  beforeEach(() => {
    stand = new Stand([full(), windowed(8)], { media: ['device', 'host', 'host', 'disk'] });
  });

  test('from tier to tier is one update a block and group', () => {
    const [block] = stand.blocks(4);
    const pages = [F, W].map((group) => stand.list(block, group));
    stand.told();
    for (const page of pages) stand.recorder.moved(page, 0, 1);
    expect(stand.told()).toEqual(['0 updated 0 0 -> 1', '1 updated 0 0 -> 1']);
  });

  test('goes out behind removals that wait', () => {
    const [first, second] = stand.blocks(8);
    const pages = [first, second].map((block) => stand.list(block, F));
    const other = stand.list(second, W);
    stand.told();
    stand.grove.tree.remove(other);
    stand.recorder.moved(pages[0], 0, 1);
    expect(stand.told()).toEqual(['1 removed 1', '0 updated 0 0 -> 1']);
  });

  test('and is dropped there, is removed from there', () => {
    const [block] = stand.blocks(4);
    const page = stand.list(block, F);
    stand.recorder.moved(page, 0, 1);
    stand.told();
    stand.grove.tree.remove(page);
    expect(stand.told()).toEqual(['0 removed 0 from 1']);
  });

  test('is not told when its block is not, or not from there', () => {
    const [block] = stand.blocks(4);
    const page = stand.list(block, F);
    stand.told();
    stand.recorder.moved(stand.grove.page(F), 0, 1);
    stand.recorder.moved(stand.list(block, W, 2), 0, 1);
    stand.recorder.moved(page, 1, 3);
    expect(stand.told()).toEqual([]);
  });
});

describe('copies in several tiers', () => {
  beforeEach(() => {
    stand = new Stand([full()], { media: ['device', 'host', 'host', 'disk'] });
  });

  test('are stored once a medium, and removed with the last copy there', () => {
    const [block] = stand.blocks(4);
    const page = stand.list(block, F);
    for (const tier of [0, 1, 2, 1]) stand.recorder.stored(page, tier);
    expect(stand.told()).toEqual(['0 stored 0', '0 stored 0 in 1']);
    for (const tier of [1, 1, 3]) stand.recorder.removed(page, tier);
    expect(stand.told()).toEqual([]);
    stand.recorder.removed(page, 2);
    expect(stand.told()).toEqual(['0 removed 0 from 2']);
    stand.grove.tree.remove(page);
    expect(stand.told()).toEqual(['0 removed 0']);
  });

  test('one of which moves to where another is: that one is left', () => {
    const [block] = stand.blocks(4);
    const page = stand.list(block, F);
    stand.recorder.stored(page, 1);
    stand.told();
    stand.recorder.moved(page, 0, 1);
    expect(stand.told()).toEqual(['0 removed 0']);
    stand.recorder.stored(page, 0);
    stand.recorder.moved(page, 0, 3);
    expect(stand.told()).toEqual(['0 stored 0', '0 stored 0 in 3', '0 removed 0']);
  });
});

test('a manager tells its groups at first, private ones left out', () => {
  const own = new Stand([full(), windowed(8, 'private'), windowed(8, 'optional')], { media: ['device', 'host'] });
  own.recorder.created([
    [5, 6],
    [7, 8],
    [9, 10],
  ]);
  expect(own.told()).toEqual(['0 created 5,6', '2 created 9,10']);
});

describe('a batch', () => {
  test('is not pushed when nothing happened', () => {
    stand.recorder.flush();
    expect(stand.log.take()).toEqual([]);
  });

  test('has ids that go on', () => {
    const [block] = stand.blocks(4);
    stand.list(block, F);
    stand.recorder.flush();
    stand.recorder.cleared();
    stand.recorder.flush();
    expect(stand.log.take().map(({ id }) => id)).toEqual([0, 1]);
  });
});
