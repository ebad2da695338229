import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { HybridEngine } from '@bufferwise/hybrid-engine';
import { defineCommand } from '../command/command.ts';
import { reportTable } from '../demo/report-table.ts';
import { type DemoObserver, firstPrompt, runRequests } from '../demo/run-requests.ts';
import { askSecondProcess } from '../demo/second-process.ts';
import { secondText } from '../demo/second-text.ts';
import { ENDING_A, ENDING_B, SECOND_TURN, SHARED_PROMPT } from '../demo/story.ts';
import { judge } from '../demo/verdict.ts';
import { openDevice } from '../gpu/open-device.ts';
import { wholeNumber } from '../input/arguments.ts';
import { DEMO_MODEL_FOLDER, readModelFolder } from '../input/model-folder.ts';
import { openPrefixStore, type PrefixStore } from '../input/prefix-store.ts';
import { parseStoreAddress } from '../store/store-address.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { memoryBytes } from './generate.ts';

const texts = { shared: SHARED_PROMPT, endingA: ENDING_A, endingB: ENDING_B, secondTurn: SECOND_TURN };

/** Shows reuse group by group on the demo model, also by a second process, and proves that it changes no word. Exit code 1 when it does. */
export const demo = defineCommand({
  name: 'demo',
  summary: 'Three requests on a hybrid model, with reuse and without, and a second process that goes on from the first',
  args: {
    model: { type: 'string', description: 'Folder of a model like the demo model, which is the default', valueHint: 'DIR' },
    'max-new-tokens': { type: 'string', description: 'Tokens to generate for each request', valueHint: 'N', default: '40' },
    memory: { type: 'string', description: 'Memory for all pages', valueHint: 'SIZE', default: '64MiB' },
    'memory-mib': { type: 'string', description: 'The same in MiB; goes before --memory', valueHint: 'N' },
    store: {
      type: 'string',
      description: 'What both processes keep prefixes in, as of generate; else a folder that goes with the demo',
      valueHint: 'DIR|ADDRESS',
    },
    json: { type: 'boolean', description: 'Print one JSON object instead of the story', default: false },
  },
  examples: [
    { what: 'The whole story', line: 'bufferwise demo' },
    { what: 'Shorter answers, for a check', line: 'bufferwise demo --max-new-tokens 8 --json' },
    { what: 'Two processes that share a server', line: 'bufferwise demo --store redis://127.0.0.1:6379' },
  ],
  async run(given, terminal) {
    if (given.store !== undefined) parseStoreAddress(given.store);
    const settings: DemoSettings = {
      maxNewTokens: wholeNumber('max-new-tokens', given['max-new-tokens'], { min: 1, max: 100_000 }),
      memoryBytes: memoryBytes(given.memory, given['memory-mib']),
      model: given.model ?? DEMO_MODEL_FOLDER,
      store: given.store,
      json: given.json,
    };
    return tell(settings, terminal);
  },
});

interface DemoSettings {
  readonly maxNewTokens: number;
  readonly memoryBytes: number;
  /** A folder. */
  readonly model: string;
  readonly store: string | undefined;
  readonly json: boolean;
}

/** @returns the exit code */
async function tell(settings: DemoSettings, terminal: Terminal): Promise<number> {
  const { maxNewTokens, memoryBytes: deviceBytes, json } = settings;
  const { bold, dim } = terminal.colors;
  const { signal } = terminal;
  const say = (text: string) => (json ? undefined : terminal.print(text));
  const observer = json ? SILENT : storyTeller(terminal);
  const model = await readModelFolder(settings.model);
  const { device, name } = await openDevice();
  const folder = await mkdtemp(join(tmpdir(), 'bufferwise-demo-'));
  const store = settings.store ?? join(folder, 'store');
  let outside: PrefixStore | undefined;
  let engine: HybridEngine | undefined;
  try {
    outside = await openPrefixStore(parseStoreAddress(store), { quotaBytes: STORE_BYTES, env: process.env }, model);
    engine = await HybridEngine.create({ model, device, cache: { deviceBytes }, outside });
    const { manager } = engine;
    const { layerPattern } = model.config;
    say(
      `${bold(model.config.name)}: ${layerPattern.length} layers ${layerPattern} (M = Mamba-2, S = sliding window, F = full attention) on ${name}\n`,
    );
    say(`${dim(`${SHARED_PROMPT.slice(0, 160)} …`)}\n`);
    const sharedTokens = model.tokenizer.encode(SHARED_PROMPT).length;
    say(`All requests begin with these ${SHARED_PROMPT.length} characters of Moby-Dick, ${sharedTokens} tokens.\n\n`);

    say(`${bold('With reuse')}\n`);
    const withReuse = await runRequests(engine, texts, { reuse: true, maxNewTokens, observer, signal });
    // What is being saved is held.
    await engine.saved();
    const words = outside.trouble();
    if (words !== undefined) terminal.tell(`bufferwise demo: ${words}\n`);
    manager.clearReusableBlocks();
    say(`\n${bold('The same without reuse')}\n`);
    const withoutReuse = await runRequests(engine, texts, { reuse: false, maxNewTokens, observer, signal });
    // A folder is that of one process at a time.
    await engine.close();
    await outside.close();

    say(`\n${bold('A second process, with an empty cache, on the store of the first')}\n`);
    observer.begins('A', ENDING_A);
    const prompt = firstPrompt(model.tokenizer, texts);
    const second = await askSecondProcess({ ...settings, store, prompt, folder, signal });
    observer.says(second.text);
    observer.ends();

    say(`\n${reportTable(manager, withReuse, withoutReuse, terminal.colors)}\n\n`);
    say(`${secondText(manager, second, withReuse[0])}\n\n`);
    const { tokensPerBlock } = manager.layout;
    const verdict = judge({ withReuse, withoutReuse, second, sharedTokens, tokensPerBlock }, terminal.colors);
    say(`${verdict.text}\n`);
    const figures = { passed: verdict.passed, device: name, sharedTokens, withReuse, withoutReuse, secondProcess: second };
    if (json) terminal.print(`${JSON.stringify(figures)}\n`);
    return verdict.passed ? 0 : 1;
  } finally {
    await engine?.close();
    await outside?.close();
    device.destroy();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Bytes of a folder that both processes keep prefixes in. */
const STORE_BYTES = 2 ** 30;

const SILENT: DemoObserver = { begins: () => {}, says: () => {}, ends: () => {} };

function storyTeller({ print, colors }: Terminal): DemoObserver {
  return {
    begins: (name, ending) => print(`${colors.cyan(name)} ${colors.dim(`…${ending}`)}`),
    says: (text) => print(text.replace(/\n/g, ' ')),
    ends: () => print('\n'),
  };
}
