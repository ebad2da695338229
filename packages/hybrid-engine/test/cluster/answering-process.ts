/**
 * A process that answers prompts with what others left in a cluster. Each line of its standard input is a question, and is answered on the
 * standard output by an engine that begins with an empty cache.
 */
import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { PageStoreConnector } from '@bufferwise/adapter-connectors';
import { RedisPageStore } from '@bufferwise/adapter-connectors/redis-store';
import { openGpu } from '@bufferwise-internal/webgpu-node';
import { HybridEngine } from '../../src/engine/hybrid-engine.ts';
import { readGgufModel } from '../../src/gguf/gguf-model.ts';
import { modelFingerprint } from '../../src/outside/model-fingerprint.ts';
import type { Answer, Question } from './question.ts';

/** Answers until there are no more questions. */
export async function answerQuestions(): Promise<void> {
  const device = await (await openGpu()).requestDevice({ label: 'answering process' });
  for await (const line of createInterface({ input: process.stdin }))
    process.stdout.write(`${JSON.stringify(await answer(device, JSON.parse(line)))}\n`);
  device.destroy();
}

async function answer(device: GPUDevice, question: Question): Promise<Answer> {
  const { urls, modelFile, prompt, maxNewTokens, fingerprint, salt, tokensPerBlock = 8 } = question;
  const model = readGgufModel(await readFile(modelFile));
  // Nothing here is about speed: a busy machine has its time.
  const store = await RedisPageStore.open({
    server: { cluster: { rootNodes: urls.map((url) => ({ url })) } },
    timeoutMs: 30_000,
  });
  const connector = new PageStoreConnector(store, { timeouts: { lookupMs: 30_000, loadMs: 30_000 } });
  const engine = await HybridEngine.create({
    model,
    device,
    chunkTokens: 16,
    debugChecks: true,
    cache: { tokensPerBlock, deviceBytes: 32 << 20 },
    outside: { connector, modelFingerprint: fingerprint ?? modelFingerprint(model), lookupMs: 30_000 },
  });
  const { tokens, report } = await engine.complete({ prompt, maxNewTokens, ...(salt !== undefined && { scope: { salt } }) });
  await engine.saved();
  const outside = { ...engine.outside } as Answer['outside'];
  await engine.close();
  await connector.close();
  await store.close();
  return { pid: process.pid, tokens, reusedTokens: report.reusedTokens, outside, store: store.statistics() };
}
