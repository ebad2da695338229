/** A page whose cache is kept in the browser's own files (OPFS): what was computed before a reload is not computed again. */
import { PageStoreConnector } from '@bufferwise/adapter-connectors';
import { OpfsPageStore } from '@bufferwise/adapter-connectors/opfs-store';
import { HybridEngine, modelFingerprint, readModel } from '@bufferwise/hybrid-engine';

const element = <T extends HTMLElement>(selector: string) => document.querySelector(selector) as T;
const say = (text: string) => {
  element('#report').textContent = text;
};

/** The engine, with the prefixes that this page and its earlier visits have left. */
async function start() {
  const read = async (name: string) => new Uint8Array(await (await fetch(`./whaler-1m/${name}`)).arrayBuffer());
  const [config, tokenizer, weights] = await Promise.all(['config.json', 'tokenizer.json', 'model.safetensors'].map(read));
  const model = readModel({ config, tokenizer, weights });

  const adapter = await navigator.gpu?.requestAdapter();
  if (!adapter) throw new Error('This page needs a browser with WebGPU.');
  const device = await adapter.requestDevice();

  const worker = () => new Worker(new URL('./pages-worker.ts', import.meta.url), { type: 'module' });
  const store = await OpfsPageStore.open({ worker, directory: 'warm-page', quotaBytes: 256 << 20 });
  // On a slow machine files still take less time than computing: it is worth waiting for them.
  const timeouts = { lookupMs: 30_000, loadMs: 30_000, saveMs: 30_000, keepFinishedMs: 30_000 };
  const connector = new PageStoreConnector(store, { timeouts });
  const outside = { connector, modelFingerprint: modelFingerprint(model), lookupMs: timeouts.lookupMs };
  return { model, engine: await HybridEngine.create({ model, device, outside }) };
}

async function answer({ model, engine }: Awaited<ReturnType<typeof start>>): Promise<void> {
  const prompt = model.tokenizer.encode(element<HTMLTextAreaElement>('#prompt').value);
  const loadedBefore = engine.outside?.loadedTokens ?? 0;
  const tokens: number[] = [];
  const answer = engine.generate({ prompt, maxNewTokens: 16 });
  let next = await answer.next();
  for (; !next.done; next = await answer.next()) {
    tokens.push(next.value.token);
    element('#answer').textContent = `…${model.tokenizer.decode(tokens)}`;
  }
  await engine.saved();
  const { promptTokens, computedTokens, timeToFirstTokenMs } = next.value;
  const loaded = (engine.outside?.loadedTokens ?? 0) - loadedBefore;
  say(
    `${promptTokens} tokens: ${loaded} from files, ${promptTokens - computedTokens - loaded} from memory, ${computedTokens} computed. ` +
      `The first word came after ${Math.round(timeToFirstTokenMs)} ms. Reload the page and go on again.`,
  );
}

const button = element<HTMLButtonElement>('button');
start().then(
  (started) => {
    button.disabled = false;
    element('form').addEventListener('submit', async (event) => {
      event.preventDefault();
      button.disabled = true;
      await answer(started).catch((error) => say(error.message));
      button.disabled = false;
    });
  },
  (error) => say(error.message),
);
