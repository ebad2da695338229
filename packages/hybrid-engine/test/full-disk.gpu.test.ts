import { join } from 'node:path';
import { PageStoreConnector } from '@bufferwise/adapter-connectors';
import { FilePageStore } from '@bufferwise/adapter-connectors/file-store';
import { SmallDisk } from '@bufferwise-internal/services';
import { requestTestDevice } from '@bufferwise-internal/webgpu-node/testing';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { HybridEngine } from '../src/engine/hybrid-engine.ts';
import { readGgufModel } from '../src/gguf/gguf-model.ts';
import { oracleAnswers, oracleFile } from '../src/gguf/testing/oracle-models.ts';
import { modelFingerprint } from '../src/outside/model-fingerprint.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const NAME = 'granitehybrid-101';
const DISK_BYTES = 256 * 1024;
const device = await requestTestDevice();
const model = readGgufModel(oracleFile(NAME));
const { prompt, greedy } = oracleAnswers(NAME).reduce((a, b) => (b.prompt.length > a.prompt.length ? b : a));
const expected = greedy.slice(0, 4);
const wholeBlocks = prompt.length - 1 - ((prompt.length - 1) % 8);

/** Answers the prompt with an empty cache on what a folder has. */
async function answerOn(folder: string, whenOpen: () => void = () => {}) {
  const store = await FilePageStore.open(folder);
  whenOpen();
  const connector = new PageStoreConnector(store, { timeouts: { lookupMs: 30_000, loadMs: 30_000 } });
  const engine = await HybridEngine.create({
    model,
    device,
    chunkTokens: 16,
    debugChecks: true,
    cache: { tokensPerBlock: 8, deviceBytes: 32 << 20 },
    outside: { connector, modelFingerprint: modelFingerprint(model), lookupMs: 30_000 },
  });
  const { tokens, report } = await engine.complete({ prompt, maxNewTokens: expected.length });
  await engine.saved();
  const { openRequests } = engine.statistics();
  await engine.close();
  await connector.close();
  await store.close();
  expect(openRequests).toBe(0);
  return { tokens, reusedTokens: report.reusedTokens, ...store.statistics() };
}

// Needs Linux and the right to mount.
const canMount = SmallDisk.isPossible();
if (!canMount) console.info('Skipped: a disk of a given size needs Linux and the right to mount; run this as root.');
describe.runIf(canMount)('a disk in trouble costs time and no word of an answer:', () => {
  let disk: SmallDisk;
  let folder: string;
  beforeEach(() => {
    disk = SmallDisk.mount(DISK_BYTES);
    folder = join(disk.folder, 'prefixes');
  });
  afterEach(() => disk.unmount());

  it('one that has no room for what is computed', async () => {
    const first = await answerOn(folder, () => disk.fill());
    expect(first).toMatchObject({ tokens: expected, reusedTokens: 0, stored: 0 });
    expect(first.refused).toBeGreaterThan(0);
    disk.clear();
    expect((await answerOn(folder)).tokens).toEqual(expected);
    expect(await answerOn(folder)).toMatchObject({ tokens: expected, reusedTokens: wholeBlocks, refused: 0 });
  });

  it('one that becomes full or read-only between two processes, and while one runs', async () => {
    expect(await answerOn(folder)).toMatchObject({ tokens: expected, reusedTokens: 0, refused: 0 });
    const warm = { tokens: expected, reusedTokens: wholeBlocks, damaged: 0 };
    disk.fill();
    expect(await answerOn(folder)).toMatchObject(warm);
    disk.clear();
    expect(await answerOn(folder, () => disk.setReadOnly(true))).toMatchObject(warm);
    expect(await answerOn(folder)).toMatchObject(warm);
  });
});
