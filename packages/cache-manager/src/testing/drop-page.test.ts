import { defineCacheConfig } from '@bufferwise/core-policy';
import { expect, test } from 'vitest';
import { full, model, recurrent, seq, windowed } from '../../test/support/stage.ts';
import { HostPageDevice, KvCacheManager } from '../index.ts';
import { checkInvariants, dropPage } from './index.ts';

const [F, W, S, X] = [0, 1, 2, 3];

async function withDonor() {
  const config = defineCacheConfig(model([full(), windowed(100), recurrent(), windowed(8, 'private')]));
  const manager = new KvCacheManager({ config, device: new HostPageDevice() });
  const donor = manager.createKvCache();
  await donor.resume();
  for (const count of [8, 10]) {
    donor.resize(count);
    donor.commit(seq(count).slice(donor.numCommittedTokens));
  }
  donor.close();
  return manager;
}

test('a page is dropped once', async () => {
  const manager = await withDonor();
  expect(dropPage(manager, { tokens: seq(10), block: 1, groupId: W })).toBe(true);
  expect(dropPage(manager, { tokens: seq(10), block: 1, groupId: W })).toBe(false);
  checkInvariants(manager);
  expect(manager.probeReuse(seq(10))).toBe(0);
});

test.each([
  ['of a partial block, by exactly its tokens', { tokens: seq(10), block: 2, groupId: F }, true],
  ['by fewer tokens than the block has', { tokens: seq(9), block: 2, groupId: F }, false],
  ['by more tokens than the block has', { tokens: seq(11), block: 2, groupId: F }, false],
  ['by other tokens', { tokens: [0, 1, 2, 3, 4, 5, 6, 8], block: 1, groupId: F }, false],
  ['by other tokens before the block', { tokens: [9, 1, 2, 3, 4, 5, 6, 7], block: 1, groupId: F }, false],
  ['behind a block that the tokens do not fill', { tokens: [0, 1, 2], block: 1, groupId: F }, false],
  ['of a block beyond the tokens', { tokens: seq(8), block: 2, groupId: F }, false],
  ['of a block before the first', { tokens: seq(8), block: -1, groupId: F }, false],
  ['of a group that does not exist', { tokens: seq(8), block: 0, groupId: 9 }, false],
  ['of a private group', { tokens: seq(8), block: 1, groupId: X }, false],
  ['in another scope', { tokens: seq(8), block: 0, groupId: F, scope: { salt: 1 } }, false],
  ['as a snapshot at exactly its count', { tokens: seq(8), block: 1, groupId: S }, true],
  ['as a snapshot at the end of a partial block', { tokens: seq(10), block: 2, groupId: S }, true],
  ['as a snapshot at a count that has none', { tokens: seq(7), block: 1, groupId: S }, false],
])('a page %s', async (_, target, expected) => {
  const manager = await withDonor();
  expect(dropPage(manager, target)).toBe(expected);
  checkInvariants(manager);
});

test('a snapshot is found in a longer block that covers the piece', async () => {
  const manager = await withDonor();
  const longer = manager.createKvCache({ tokens: seq(12) });
  await longer.resume();
  longer.resize(12);
  longer.commit([10, 11]);
  longer.close();
  expect(manager.probeReuse(seq(10))).toBe(10);
  expect(dropPage(manager, { tokens: seq(10), block: 2, groupId: S })).toBe(true);
  expect(manager.probeReuse(seq(10))).toBe(8);
});

test('a page that a request holds is dropped from the tree and stays with its holder', async () => {
  const manager = await withDonor();
  const holder = manager.createKvCache({ tokens: seq(10) });
  expect(dropPage(manager, { tokens: seq(10), block: 0, groupId: F })).toBe(true);
  expect(manager.probeReuse(seq(10))).toBe(0);
  expect([await holder.resume(), holder.numCommittedTokens]).toEqual([true, 10]);
  checkInvariants(manager);
});
