import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'tsup';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FilePageStore } from '../../src/file/file-page-store.ts';
import { pageOf } from './page-of.ts';

const QUOTA = 3_000_000;
/** A thousand take some minutes: `BUFFERWISE_KILLS=1000`. */
const KILLS = Number(process.env.BUFFERWISE_KILLS ?? 50);

const outer = mkdtempSync(join(tmpdir(), 'killed-writer-'));
const folder = join(outer, 'pages');
afterAll(() => rmSync(outer, { recursive: true, force: true }));

beforeAll(async () => {
  await build({
    config: false,
    silent: true,
    entry: [join(import.meta.dirname, 'page-writer.ts')],
    outDir: outer,
    format: 'esm',
    platform: 'node',
    target: 'es2022',
    outExtension: () => ({ js: '.mjs' }),
    noExternal: [/.*/],
    tsconfig: join(import.meta.dirname, '../../tsconfig.json'),
    esbuildOptions(options) {
      options.conditions = ['@bufferwise/source'];
    },
  });
});

/** Runs a writer, kills it so many milliseconds after it has opened the folder, and answers what it said it had stored, without what it deleted. */
async function killedAfter(ms: number, run: number): Promise<string[]> {
  const child = spawn(process.execPath, [join(outer, 'page-writer.mjs'), folder, String(QUOTA), String(run)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let said = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  child.stdout.once('data', () => setTimeout(() => child.kill('SIGKILL'), ms));
  const [code, signal] = await new Promise<[number | null, string | null]>((resolve) =>
    child.on('close', (...how: [number | null, string | null]) => resolve(how)),
  );
  expect({ code, signal }).toEqual({ code: null, signal: 'SIGKILL' });
  const lines = said.split('\n').slice(1, -1);
  const deleted = new Set(lines.flatMap((line) => (line.startsWith('-') ? [line.slice(1)] : [])));
  return lines.filter((line) => !line.startsWith('-') && !deleted.has(line));
}

function isPageOf(key: string, bytes: Uint8Array): boolean {
  return Buffer.compare(pageOf(key), bytes) === 0;
}

test(
  `after each of ${KILLS} kills in the middle of work, what was finished is there, and nothing else is`,
  async () => {
    let found = 0;
    for (let run = 0; run < KILLS; run++) {
      // Spread over the first pages and over a folder that is full and evicts.
      const finished = await killedAfter((run * 37) % 120, run);
      const store = await FilePageStore.open(folder, { quotaBytes: QUOTA });
      const files = readdirSync(store.folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
      const pages = files.filter(({ name }) => name.endsWith('.page'));
      const pageBytes = pages.reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);
      expect(files.filter(({ name }) => !name.endsWith('.page')).map(({ name }) => name)).toEqual([]);
      expect(store.statistics().usedBytes).toBe(pageBytes);
      expect(pageBytes).toBeLessThanOrEqual(QUOTA);

      // The last pages fit into the quota whatever came before. The very last one may have been told as deleted, and not said so.
      for (const key of finished.slice(-16)) {
        const [bytes] = await store.get([{ key }]);
        if (bytes === null && Number(/\d+$/.exec(key)) % 8 === 0) continue;
        expect(bytes !== null && isPageOf(key, bytes), `${key} of run ${run}`).toBe(true);
        found++;
      }
      // Whatever else is there is whole.
      let cursor: string | undefined;
      do {
        const piece = await store.list({ cursor });
        const all = await store.get(piece.keys);
        all.forEach((bytes, i) => {
          expect(bytes !== null && isPageOf(piece.keys[i].key, bytes), piece.keys[i].key).toBe(true);
        });
        cursor = piece.cursor ?? undefined;
      } while (cursor !== undefined);
      expect(store.statistics().damaged).toBe(0);
      await store.close();
    }
    expect(found).toBeGreaterThan(0);
  },
  20_000 * Math.max(6, KILLS),
);
