import { basename } from 'node:path';
import { PageStoreConnector } from '@bufferwise/adapter-connectors';
import { importPrefix, inspectPrefix, type PageEncoding } from '@bufferwise/adapter-connectors/prefix-file';
import { MemoryPageStore } from '@bufferwise/adapter-kit/memory';
import type { ReuseScope } from '@bufferwise/cache-manager';
import { type EngineModel, HybridEngine, modelFingerprint } from '@bufferwise/hybrid-engine';
import { formatBytes, formatCount } from '@bufferwise/scratch-allocator';
import { CliError, UsageError } from '../cli-error.ts';
import { defineCommand } from '../command/command.ts';
import { openDevice } from '../gpu/open-device.ts';
import { byteSize, wholeNumber } from '../input/arguments.ts';
import { DEMO_MODEL_FOLDER, readEngineModel } from '../input/model-folder.ts';
import { openPrefixStore, type PrefixStore } from '../input/prefix-store.ts';
import { readPrompts } from '../input/prompts-file.ts';
import { STORE_ENCODING_ARGS, storeEncoding } from '../input/store-encoding.ts';
import { computePrefix } from '../prefix/compute-prefix.ts';
import { readFileWith, writeWhole } from '../prefix/prefix-files.ts';
import { prefixJson, prefixText } from '../prefix/prefix-text.ts';
import type { PageStoreChoice } from '../store/open-page-store.ts';
import { parseStoreAddress, type StoreAddress } from '../store/store-address.ts';
import { STORE_ARGS, storeChoice } from '../store/store-args.ts';
import type { Terminal } from '../terminal/terminal.ts';

const ACTIONS = ['export', 'inspect', 'import'] as const;
type Action = (typeof ACTIONS)[number];

const ENCODINGS = ['compressed', 'plain', 'int8'] as const;
const ENCODING_OF: Readonly<Record<(typeof ENCODINGS)[number], PageEncoding>> = {
  compressed: {},
  plain: { compress: false },
  int8: { int8: true },
};

/** One prepared prefix in one file. */
export const prefix = defineCommand({
  name: 'prefix',
  summary: 'Carry the prepared prefix of a prompt in a file: export it, inspect it, import it elsewhere',
  args: {
    action: { type: 'positional', description: 'export, inspect or import', required: true },
    file: { type: 'positional', description: 'The file with the prefix', required: true },
    model: {
      type: 'string',
      description:
        'Whose prefix: a GGUF file, or a folder with config.json, tokenizer.json and model.safetensors; else the demo model',
      valueHint: 'FILE|DIR',
    },
    prompts: {
      type: 'string',
      description: 'export: prompts, one a line, {"text": …} or {"ids": […]}',
      valueHint: 'FILE.jsonl',
    },
    prompt: { type: 'string', description: 'export: which of them, counted from 1', valueHint: 'N', default: '1' },
    encoding: { type: 'enum', description: 'export: how the file keeps pages', options: [...ENCODINGS], default: 'compressed' },
    salt: {
      type: 'string',
      description: 'Whole number that keeps tenants apart; of the export, and the same of the import',
      valueHint: 'N',
    },
    ...STORE_ARGS,
    store: {
      type: 'string',
      description:
        'A folder or an address, as of generate. export: looked into first, and what is computed is kept there; import: where the prefix goes',
      valueHint: 'DIR|ADDRESS',
    },
    ...STORE_ENCODING_ARGS,
    memory: { type: 'string', description: 'Memory for all pages', valueHint: 'SIZE', default: '64MiB' },
    verify: { type: 'boolean', description: 'inspect: read the whole file, and check every page', default: false },
    json: { type: 'boolean', description: 'Print one JSON object', default: false },
  },
  operandValues: { action: ACTIONS },
  examples: [
    { what: 'Compute the prefix of a prompt once', line: 'bufferwise prefix export moby.bwprefix --prompts prompts.jsonl' },
    { what: 'See what is in it, and that it is whole', line: 'bufferwise prefix inspect moby.bwprefix --verify' },
    {
      what: 'Begin with it on another machine',
      line: 'bufferwise prefix import moby.bwprefix --store ~/.cache/bufferwise/prefixes',
    },
    {
      what: 'Keys and values in 8 bits, for stores that --store-int8 is used with',
      line: 'bufferwise prefix export small.bwprefix --prompts prompts.jsonl --encoding int8',
    },
  ],
  async run(given, terminal) {
    const action = actionOf(given.action);
    if (action === 'export' && given.prompts === undefined)
      throw new UsageError('export takes --prompts FILE.jsonl; see bufferwise prefix --help');
    if (action === 'import' && given.store === undefined)
      throw new UsageError('import takes --store DIR|ADDRESS; see bufferwise prefix --help');
    if (action === 'inspect') return inspect(given.file, given.verify, given.json, terminal);
    const job: Job = {
      file: given.file,
      model: given.model ?? DEMO_MODEL_FOLDER,
      memoryBytes: byteSize('memory', given.memory),
      address: given.store === undefined ? undefined : parseStoreAddress(given.store),
      choice: storeChoice(given),
      storeEncoding: storeEncoding(given),
      scope: given.salt === undefined ? undefined : { salt: saltOf(given.salt) },
      json: given.json,
      terminal,
    };
    if (action === 'import') return importFile(job);
    const number = wholeNumber('prompt', given.prompt, { min: 1, max: 1_000_000 });
    return exportFile(job, given.prompts as string, number, ENCODING_OF[given.encoding as keyof typeof ENCODING_OF]);
  },
});

/** What export and import have in common. */
interface Job {
  readonly file: string;
  readonly model: string;
  readonly memoryBytes: number;
  readonly address: StoreAddress | undefined;
  readonly choice: PageStoreChoice;
  readonly storeEncoding: PageEncoding | undefined;
  readonly scope: ReuseScope | undefined;
  readonly json: boolean;
  readonly terminal: Terminal;
}

async function inspect(file: string, verify: boolean, json: boolean, terminal: Terminal): Promise<number> {
  const info = await readFileWith(file, (source) => inspectPrefix(source, { verify, signal: terminal.signal }));
  terminal.print(json ? `${JSON.stringify(prefixJson(info))}\n` : prefixText(info, terminal));
  return 0;
}

async function exportFile(job: Job, promptsFile: string, number: number, encoding: PageEncoding): Promise<number> {
  const { file, model: path, scope, json, terminal } = job;
  const model = await readEngineModel(path);
  const prompts = await readPrompts(promptsFile, model.tokenizer);
  const prompt = prompts[number - 1];
  if (prompt === undefined)
    throw new CliError(`${promptsFile} holds ${prompts.length} prompts, and none is number ${number}; pass another --prompt`);
  return withEngine(job, model, async (engine, { connector, modelFingerprint: fingerprint }) => {
    const { signal } = terminal;
    const layout = engine.connectorLayout(fingerprint);
    const options = { store: connector.store, layout, scope, modelName: basename(path), encoding, signal };
    const found = await computePrefix(engine, prompt, options);
    const fileBytes = await writeWhole(file, found, signal);
    const { tokens, numPages, pageBytes } = found.info;
    const words = `${formatCount(tokens.length)} tokens, ${formatCount(numPages)} pages of ${formatBytes(pageBytes)} in ${formatBytes(fileBytes)}`;
    terminal.print(json ? `${JSON.stringify({ ...prefixJson(found.info), fileBytes })}\n` : `${file}: ${words}\n`);
    return 0;
  });
}

async function importFile(job: Job): Promise<number> {
  const { file, scope, json, terminal } = job;
  const { signal } = terminal;
  // Before anything is opened, and read to its end: nothing of a damaged file is stored.
  await readFileWith(file, (source) => inspectPrefix(source, { verify: true, signal }));
  return withEngine(job, await readEngineModel(job.model), async (engine, { connector, modelFingerprint: fingerprint }) => {
    const options = { store: connector.store, layout: engine.connectorLayout(fingerprint), scope, signal };
    const { info, stored, present, refused } = await readFileWith(file, (source) => importPrefix(source, options));
    if (refused > 0)
      throw new CliError(
        `--store ${job.address?.shown} did not take ${refused} of ${info.numPages} pages; give a folder more with --store-memory`,
      );
    const words = `${formatCount(info.tokens.length)} tokens, ${formatCount(stored)} pages stored, ${formatCount(present)} were there`;
    terminal.print(json ? `${JSON.stringify({ ...prefixJson(info), stored, present })}\n` : `${job.address?.shown}: ${words}\n`);
    return 0;
  });
}

/** An engine on the store of a job, or on one in memory. */
async function withEngine(
  job: Job,
  model: EngineModel,
  use: (engine: HybridEngine, store: PrefixStore) => Promise<number>,
): Promise<number> {
  const { device } = await openDevice();
  let store: PrefixStore | undefined;
  let engine: HybridEngine | undefined;
  try {
    const { address, choice, storeEncoding: encoding } = job;
    store = address === undefined ? inMemory(model) : await openPrefixStore(address, choice, model, encoding);
    const words = store.trouble();
    if (words !== undefined) job.terminal.tell(`bufferwise prefix: ${words}\n`);
    const outside = { connector: store.connector, modelFingerprint: store.modelFingerprint, minTokens: 1 };
    engine = await HybridEngine.create({ model, device, cache: { deviceBytes: job.memoryBytes }, outside });
    return await use(engine, store);
  } finally {
    await engine?.close();
    await store?.close();
    device.destroy();
  }
}

function inMemory(model: EngineModel): PrefixStore {
  const store = new MemoryPageStore();
  const connector = new PageStoreConnector(store);
  return {
    connector,
    modelFingerprint: modelFingerprint(model),
    trouble: () => undefined,
    statistics: () => store.statistics(),
    async close() {
      await connector.close();
      await store.close();
    },
  };
}

function actionOf(text: string): Action {
  const action = ACTIONS.find((each) => each === text);
  if (action === undefined) throw new UsageError(`unknown action ${JSON.stringify(text)}; there are ${ACTIONS.join(', ')}`);
  return action;
}

function saltOf(text: string): bigint {
  const salt = /^\d{1,20}$/.test(text) ? BigInt(text) : -1n;
  if (salt >= 0n && salt < 1n << 64n) return salt;
  throw new UsageError(`--salt is ${JSON.stringify(text)}; it must be a whole number below 2^64`);
}
