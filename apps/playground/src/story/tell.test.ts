import type { GenerationReport } from '@bufferwise/hybrid-engine';
import { expect, test } from 'vitest';
import type { GroupAbout } from '../protocol/about.ts';
import type { JournalEntry } from '../protocol/journal.ts';
import { tell } from './tell.ts';

const group = (id: number, name: string, policy: GroupAbout['policy'] = 'required'): GroupAbout => ({
  id,
  name,
  policy,
  holds: '',
  kind: 'attention',
});
const groups = [group(0, 'Mamba state'), group(1, 'Replay ring', 'private'), group(2, 'Full attention')];
const texts = (...entries: JournalEntry[]) => tell(entries, groups).map(({ text }) => text);
const report = {
  generatedTokens: 24,
  computedTokens: 5,
  recomputedTokens: 0,
  draftedTokens: 0,
  acceptedDrafts: 0,
} as GenerationReport;

test('a beginning says what was found, what each group lent, and what nobody lends', () => {
  const reuse = [545, 0, 545].map((reusedTokens, id) => ({ groupId: id as never, policy: groups[id].policy, reusedTokens }));
  const [told] = tell([{ at: 1, kind: 'began', conversation: 1, promptTokens: 550, reusedTokens: 545, groups: reuse }], groups);
  expect(told).toMatchObject({ at: 1, conversation: 1, text: 'B finds 545 of its 550 tokens in memory and reads 5.' });
  expect(told.because).toBe(
    'Tokens lent by each group: mamba state (545) and full attention (545). Its replay ring is private: nobody lends it.',
  );
});

test('a beginning without a match says that everything is read', () => {
  expect(texts({ at: 1, kind: 'began', conversation: 0, promptTokens: 1, reusedTokens: 0, groups: [] })).toEqual([
    'A begins with nothing: its 1 token goes through the model.',
  ]);
});

test('pages of several groups that shared a fate are one sentence', () => {
  expect(
    texts(
      { at: 1, kind: 'stored', groupId: 0, numPages: 1 },
      { at: 1, kind: 'stored', groupId: 2, numPages: 3 },
      { at: 2, kind: 'answered', conversation: 0, report },
      { at: 2, kind: 'stored', groupId: 2, numPages: 1 },
    ),
  ).toEqual([
    '1 page of mamba state and 4 pages of full attention can be shared from now on.',
    'A has answered with 24 tokens, after reading 5.',
  ]);
});

test('who left the device is forgotten, kept below, or both', () => {
  const evicted = (numPages: number, kept: number): JournalEntry => ({ at: 1, kind: 'evicted', groupId: 2, numPages, kept });
  expect(texts(evicted(2, 0))).toEqual(['2 pages of full attention left the device and are forgotten.']);
  expect(texts(evicted(2, 2))).toEqual(['2 pages of full attention left the device for host memory.']);
  expect(texts(evicted(3, 1))).toEqual(['3 pages of full attention left the device (1 of them for host memory).']);
});

test('a resize that was refused says why', () => {
  const [told] = tell([{ at: 1, kind: 'resized', deviceBytes: 8 << 20, done: false }], groups);
  expect(told.text).toBe('The memory could not be made 8 MiB.');
  expect(told.because).toMatch(/hold more pages/);
});
