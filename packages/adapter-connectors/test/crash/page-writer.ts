import { FilePageStore } from '../../src/file/file-page-store.ts';
import { pageOf } from './page-of.ts';

/**
 * A process that stores pages until it is killed. Arguments: folder, quota in bytes, number of the run. It prints the key of each page
 * that was answered `stored`, and says `open` first.
 */
const [folder, quotaBytes, run] = process.argv.slice(2);
const store = await FilePageStore.open(folder, { quotaBytes: Number(quotaBytes) });
process.stdout.write('open\n');
for (let i = 0; ; i++) {
  const keys = Array.from({ length: 8 }, (_, j) => `run-${run}-page-${8 * i + j}`);
  const outcomes = await store.put(keys.map((key) => ({ key, bytes: pageOf(key) })));
  process.stdout.write(
    keys
      .filter((_, j) => outcomes[j].status === 'stored')
      .map((key) => `${key}\n`)
      .join(''),
  );
  // Some go again, and some are read, so that every kind of change is under way when the end comes.
  await store.delete([{ key: keys[0] }]);
  process.stdout.write(`-${keys[0]}\n`);
  await store.get(keys.map((key) => ({ key })));
}
