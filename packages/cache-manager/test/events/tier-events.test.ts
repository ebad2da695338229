import { type CacheConfigInput, defineCacheConfig } from '@bufferwise/core-policy';
import { expect, test } from 'vitest';
import { blockKeys, EventLog, HostPageDevice, KvCacheManager, type KvEvent, keyToHex } from '../../src/index.ts';
import { full, model, seq, windowed } from '../support/stage.ts';

/** Tokens that no other text begins with. */
const text = (name: number, count: number) => seq(count).map((token) => name * 1000 + token);
const NAMES = new Map(
  [1, 2, 3, 4].flatMap((name) =>
    blockKeys(text(name, 16), {}, 4).map((key, ordinal): [string, string] => [keyToHex(key), `${name}.${ordinal}`]),
  ),
);

/** What was told, one entry a block: group, what, where, which. */
function told(log: EventLog): string[] {
  const name = (key: Uint8Array) => NAMES.get(keyToHex(key)) ?? '?';
  return log.take().flatMap((event: KvEvent): string[] => {
    switch (event.type) {
      case 'stored':
        return event.blocks.map(({ key }) => `${event.groupId} stored in ${event.tier}: ${name(key)}`);
      case 'removed':
        return event.keys.map((key) => `${event.groupId} removed from ${event.tier}: ${name(key)}`);
      case 'updated':
        return [`${event.groupId} moved ${event.tier.from}-${event.tier.to}: ${name(event.block.key)}`];
      default:
        return [event.type];
    }
  });
}

function managed(config: CacheConfigInput) {
  const log = new EventLog();
  const manager = new KvCacheManager({
    config: defineCacheConfig(config),
    device: new HostPageDevice(),
    events: log,
    debugChecks: true,
    eviction: 'lru',
  });
  const serve = async (tokens: readonly number[]) => {
    const cache = manager.createKvCache();
    expect(await cache.resume()).toBe(true);
    expect(cache.resize(tokens.length)).toBe(true);
    cache.commit(tokens);
    cache.close();
    await manager.settled();
  };
  log.take();
  return { log, manager, serve };
}

const each = (name: number, what: string) =>
  [0, 1, 2, 3].flatMap((ordinal) => [0, 1].map((g) => `${g} ${what}: ${name}.${ordinal}`));

// Reference case E16.
test('a page that goes to the host, or comes back, is told as moved: once a block and group', async () => {
  const { log, manager, serve } = managed(model([full(), windowed(8)], { slots: 4, hostSlots: 8, maxUtilForResume: 1 }));
  await serve(text(1, 16));
  expect(told(log).sort()).toEqual(each(1, 'stored in 0').sort());
  await serve(text(2, 16));
  expect(told(log).sort()).toEqual([...each(1, 'moved 0-1'), ...each(2, 'stored in 0')].sort());
  const reader = manager.createKvCache({ tokens: text(1, 16) });
  expect(await reader.resume()).toBe(true);
  await manager.settled();
  const back = told(log);
  // The window comes back as far as it is seen from the end: two blocks.
  expect(back.filter((event) => event.includes('moved 1-0')).sort()).toEqual(
    ['0', '1', '2', '3'].map((ordinal) => `0 moved 1-0: 1.${ordinal}`).concat(['1 moved 1-0: 1.2', '1 moved 1-0: 1.3']),
  );
  expect(back.every((event) => event.includes('moved 1-0: 1.') || event.includes('moved 0-1: 2.'))).toBe(true);
  reader.close();
});

// Reference case E13.
test('a page that the last tier drops is told as removed from there, once', async () => {
  const { log, serve } = managed(model([full()], { slots: 4, hostSlots: 4, maxUtilForResume: 1 }));
  await serve(text(1, 16));
  await serve(text(2, 16));
  told(log);
  await serve(text(3, 16));
  const events = told(log);
  const dropped = ['1.3', '1.2', '1.1', '1.0'].map((block) => `0 removed from 1: ${block}`);
  expect(events.filter((event) => event.includes('removed')).sort()).toEqual(dropped.sort());
  expect(events.filter((event) => event.includes('moved 0-1'))).toHaveLength(4);
});

// Failure B79: a removal told for one of several pages of a block, while another is still there.
test('what two computed is stored once, stays known while a colder copy lives, and is removed with the last', async () => {
  const { log, manager, serve } = managed(model([full(), windowed(8)], { slots: 4, hostSlots: 4, maxUtilForResume: 1 }));
  const twins = [manager.createKvCache(), manager.createKvCache()];
  for (const twin of twins) {
    expect(await twin.resume()).toBe(true);
    expect(twin.resize(8)).toBe(true);
  }
  twins[0].commit(text(1, 8));
  const blocks = (what: string) => [0, 1].flatMap((group) => ['1.0', '1.1'].map((block) => `${group} ${what}: ${block}`));
  expect(told(log).sort()).toEqual(blocks('stored in 0').sort());
  twins[1].commit(text(1, 8));
  for (const twin of twins) twin.close();
  expect(told(log)).toEqual([]);
  await serve(text(2, 16));
  const ofFirst = () => told(log).filter((event) => event.includes(': 1.'));
  expect(ofFirst().sort()).toEqual(blocks('moved 0-1').sort());
  expect(manager.probeReuse(text(1, 8))).toBe(8);
  await serve(text(3, 16));
  await serve(text(4, 16));
  expect(ofFirst().sort()).toEqual(blocks('removed from 1').sort());
  expect(manager.probeReuse(text(1, 8))).toBe(0);
});
