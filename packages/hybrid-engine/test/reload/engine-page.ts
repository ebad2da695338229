import { PageStoreConnector } from '@bufferwise/adapter-connectors';
import { OpfsPageStore } from '@bufferwise/adapter-connectors/opfs-store';
import { HybridEngine, modelFingerprint, type OutsideCounts, readModel } from '../../src/index.ts';

/** What the page is asked. */
export interface Question {
  readonly directory: string;
  readonly prompt: readonly number[];
  readonly maxNewTokens: number;
  /** Keeps prompts apart that begin alike. */
  readonly salt: number;
}

/** What it answers. */
export interface Reply {
  /** Another one for each time that the page is loaded. */
  readonly world: string;
  readonly tokens: readonly number[];
  readonly firstTokenMs: number;
  readonly reusedTokens: number;
  /** Tokens that came from the store for this answer, and went there. */
  readonly loadedTokens: number;
  readonly savedTokens: number;
  /** Since the page was loaded. */
  readonly failedLoads: number;
}

/** A store counts as not answering only long after that: a busy machine is no failure. */
const PATIENCE_MS = 120_000;

const world = crypto.randomUUID();
let engine: Promise<HybridEngine> | undefined;

/** An application with the demo model, whose prefixes are kept in files of the browser. */
async function start(directory: string): Promise<HybridEngine> {
  const read = async (name: string) => {
    const response = await fetch(new URL(`../../../../models/whaler-1m/${name}`, import.meta.url));
    return new Uint8Array(await response.arrayBuffer());
  };
  const [config, tokenizer, weights] = await Promise.all(['config.json', 'tokenizer.json', 'model.safetensors'].map(read));
  const model = readModel({ config, tokenizer, weights });
  const adapter = await navigator.gpu.requestAdapter();
  const device = await (adapter as GPUAdapter).requestDevice();
  const worker = () => new Worker(new URL('./pages-worker.ts', import.meta.url), { type: 'module' });
  const store = await OpfsPageStore.open({ worker, directory });
  const timeouts = { lookupMs: PATIENCE_MS, loadMs: PATIENCE_MS, saveMs: PATIENCE_MS, keepFinishedMs: PATIENCE_MS };
  const connector = new PageStoreConnector(store, { timeouts });
  const outside = { connector, modelFingerprint: modelFingerprint(model), lookupMs: PATIENCE_MS };
  const engine = await HybridEngine.create({ model, device, outside });
  // Shaders are compiled when they are needed first, and times of answers are those of later ones: a text that nobody asks about, and more of it.
  const text = Array.from({ length: 48 }, (_, i) => 3 + i);
  for (const length of [40, 48]) await engine.complete({ prompt: text.slice(0, length), maxNewTokens: 2 });
  await engine.saved();
  return engine;
}

addEventListener('message', async ({ data, ports }: MessageEvent<Question>) => {
  if (data?.prompt === undefined) return;
  engine ??= start(data.directory);
  const { prompt, maxNewTokens, salt } = data;
  const asked = await engine;
  const before = { ...(asked.outside as OutsideCounts) };
  const { tokens, report } = await asked.complete({ prompt, maxNewTokens, scope: { salt } });
  await asked.saved();
  const after = asked.outside as OutsideCounts;
  const reply: Reply = {
    world,
    tokens,
    firstTokenMs: report.timeToFirstTokenMs,
    reusedTokens: report.reusedTokens,
    loadedTokens: after.loadedTokens - before.loadedTokens,
    savedTokens: after.savedTokens - before.savedTokens,
    failedLoads: after.failedLoads,
  };
  ports[0].postMessage(reply);
});

parent.postMessage('engine-page is ready', '*');
