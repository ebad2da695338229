/** A page store of one's own, and the proof that it is one. In a test of vitest `describePageStore` says the same. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type PageStoreHarness, pageStoreSuite, prove } from '@bufferwise/adapter-kit/conformance/page-store';
import { DirectoryPageStore } from './directory-page-store.ts';

const outer = await mkdtemp(join(tmpdir(), 'page-store-'));
const directoryOf = (store: unknown) => (store as DirectoryPageStore).directory;

const harness: PageStoreHarness = {
  create: async () => new DirectoryPageStore(await mkdtemp(join(outer, 'store-'))),
  another: (store) => new DirectoryPageStore(directoryOf(store)),
  async reopen(store) {
    await store.close();
    return new DirectoryPageStore(directoryOf(store));
  },
  /** As a bad disk would. */
  async tamper(store, { key }, change) {
    const file = join(directoryOf(store), `${key}.page`);
    await writeFile(file, change(await readFile(file)));
  },
};

const verdicts = await prove(pageStoreSuite, harness);
await rm(outer, { recursive: true });

for (const verdict of verdicts) {
  const why = verdict.outcome === 'skipped' ? ` (${verdict.reason})` : verdict.outcome === 'broken' ? `\n  ${verdict.error}` : '';
  console.log(`${verdict.outcome.padEnd(7)} ${verdict.promise}${why}`);
}
const count = (outcome: string) => verdicts.filter((verdict) => verdict.outcome === outcome).length;
console.log(`\n${count('kept')} promises kept, ${count('broken')} broken, ${count('skipped')} skipped`);
process.exitCode = count('broken') > 0 ? 1 : 0;
