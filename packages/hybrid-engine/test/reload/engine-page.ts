import { PageStoreConnector } from '@bufferwise/adapter-connectors';
import { OpfsPageStore } from '@bufferwise/adapter-connectors/opfs-store';
import { HybridEngine, modelFingerprint, readModel } from '../../src/index.ts';

/** What the page is asked. */
export interface Question {
  readonly directory: string;
  readonly prompt: readonly number[];
  readonly maxNewTokens: number;
}

/** What it answers. */
export interface Reply {
  /** Another one for each time that the page is loaded. */
  readonly world: string;
  readonly tokens: readonly number[];
  readonly firstTokenMs: number;
  readonly reusedTokens: number;
  /** Tokens that came from the store, since the page was loaded. */
  readonly loadedTokens: number;
  readonly savedTokens: number;
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
  // Shaders are compiled when they are needed first: times of answers are those of later ones.
  await engine.complete({ prompt: [1, 2, 3], maxNewTokens: 2, lookup: false });
  return engine;
}

addEventListener('message', async ({ data, ports }: MessageEvent<Question>) => {
  if (data?.prompt === undefined) return;
  engine ??= start(data.directory);
  const { prompt, maxNewTokens } = data;
  const { tokens, report } = await (await engine).complete({ prompt, maxNewTokens });
  await (await engine).saved();
  const { loadedTokens = 0, savedTokens = 0, failedLoads = 0 } = (await engine).outside ?? {};
  const reply: Reply = {
    world,
    tokens,
    firstTokenMs: report.timeToFirstTokenMs,
    reusedTokens: report.reusedTokens,
    loadedTokens,
    savedTokens,
    failedLoads,
  };
  ports[0].postMessage(reply);
});

parent.postMessage('engine-page is ready', '*');
